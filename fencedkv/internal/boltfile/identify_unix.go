//go:build unix && !linux

package boltfile

func identify(fd int, path string, id *identity) error { return identifyByStat(fd, path, id) }
