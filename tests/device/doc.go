// Package device makes devices fail under a store and checks what the store has
// promised: what each caller was told, what a reader saw, and what is there when
// the file is opened anew, on the bytes that the process had seen and on those
// that the device had made durable.
//
//   - A fixed workload, on a FUSE file system whose server counts, fails its n-th
//     write, truncation, fsync, fdatasync or sync of the directory, once or for
//     ever, for every n.
//   - A sync is held back while others read and queue.
//   - File systems are full, and a limit on the size of files is reached, with
//     every remaining room from none to enough.
//
// Controls, stores with a known flaw, show that the checks find it.
//
// The tests need root, for a mount namespace of their own, and /dev/fuse.
// DEVICE_FULL=1 combines every n with every error instead of with one of them.
package device
