"""What a judge would be shown of an item, and its tokens, without asking one; for `gradewire prompt show`."""
