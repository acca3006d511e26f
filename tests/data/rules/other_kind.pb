<!DOCTYPE html><title>Log in</title>
