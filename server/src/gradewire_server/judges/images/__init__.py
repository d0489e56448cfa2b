"""Pictures that judges are shown: checked before anything is asked, and told apart by their content."""
