mod of_old;
mod played;
mod sessions;
mod who_asks;
