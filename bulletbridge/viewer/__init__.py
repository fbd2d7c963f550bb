"""What a person sees: pictures, films, marks and sliders in Bullet's window, a browser."""
