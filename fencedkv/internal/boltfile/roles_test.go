package boltfile_test

func roleCreate([]string) error { return nil }
func roleDie([]string) error    { return nil }
