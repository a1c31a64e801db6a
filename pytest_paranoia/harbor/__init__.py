"""Harbor (the benchmark runner): its task directories run here, its job directories import, our scenarios export."""
