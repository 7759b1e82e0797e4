// Package damage breaks the files of stores and checks what a store has promised
// of a file that is damaged:
//
//   - a mark or a value that a read returns is the one that was written, whatever
//     bit is flipped, and a stale token is never admitted;
//   - what is missing is an error, or is found by Store.Check; the tables in
//     testdata say how often;
//   - no Open and no read crashes, and none of them writes to the file.
//
// The corpus is two stores of some dozens of pages: "few", whose records Open
// compares with their digests, and "many", which has more than Open compares.
// Each bit is flipped, each page is zeroed, swapped with each other one and
// replaced by what stood there before. Files are also cut short and replaced
// while they are open.
//
// Damage is examined in child processes, so that a crash costs one result. The
// normal run takes all bits of what bbolt keeps about its pages and a sample of
// the rest; DAMAGE=full takes all. Flag -update writes the tables, which change
// with the file format and with the order in which a commit takes pages.
package damage
