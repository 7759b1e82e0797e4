// Package sequential plays random calls of one caller at a time, made and shrunk
// by pgregory.net/rapid, on a store and on a model of it.
package sequential
