"""What each method of a client does: arguments checked, requests cut, broken calls taken up, answers put in order."""
