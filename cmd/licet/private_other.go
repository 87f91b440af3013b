//go:build !linux

package main

import "os"

// checkPrivate accepts every file: only on Linux does licet know how a file of secrets is mounted.
func checkPrivate(*os.File) error { return nil }
