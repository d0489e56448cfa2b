"""Methods of a client, a file each: arguments checked, requests cut, broken calls taken up, answers put in order."""
