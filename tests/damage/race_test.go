//go:build race

package damage_test

const raced = true
