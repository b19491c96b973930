"""What repeats in the background beside the missions."""
