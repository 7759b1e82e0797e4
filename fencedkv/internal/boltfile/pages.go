package boltfile

import (
	"encoding/binary"
	"fmt"
	"io"
)

// checkPages looks at what bbolt believes unseen when it opens a file: that the
// file is as long as the meta page says, the page of the root bucket, and the
// free list, whose count bbolt would allocate memory for and whose page numbers
// it would later write to.
func checkPages(path string, r io.ReaderAt, size int64, m meta) error {
	corrupt := func(format string, args ...any) error {
		return &CorruptError{Path: path, Detail: fmt.Sprintf(format, args...)}
	}
	if pages := uint64(size) / uint64(m.pageSize); m.pages > pages {
		return corrupt("the file was cut short: it has %d bytes, its meta page counts %d pages of %d",
			size, m.pages, m.pageSize)
	}
	if m.root < 2 || m.root >= m.pages {
		return corrupt("the root bucket is at page %d of %d", m.root, m.pages)
	}
	if m.freelist == noFreelist {
		return &FormatError{path, "the file has no free list (written by another program with NoFreelistSync, or " +
			"abandoned by a repair); `bbolt surgery freelist rebuild` makes one"}
	}
	if m.freelist < 2 || m.freelist >= m.pages {
		return corrupt("the free list is at page %d of %d", m.freelist, m.pages)
	}

	root, err := headerAt(r, m, m.root)
	if err != nil {
		return corrupt("page %d, the root bucket: %v", m.root, err)
	}
	if root.flags != branchPage && root.flags != leafPage {
		return corrupt("page %d should be the root bucket and is of type %#x", m.root, root.flags)
	}
	list, err := headerAt(r, m, m.freelist)
	if err != nil {
		return corrupt("page %d, the free list: %v", m.freelist, err)
	}
	if list.flags != freelistPage {
		return corrupt("page %d should be the free list and is of type %#x", m.freelist, list.flags)
	}
	if err := checkFreelist(r, m, list); err != nil {
		return corrupt("page %d, the free list: %v", m.freelist, err)
	}
	return nil
}

func headerAt(r io.ReaderAt, m meta, id uint64) (pageHeader, error) {
	b, err := readUpTo(r, int64(id)*int64(m.pageSize), headerSize)
	if err != nil {
		return pageHeader{}, err
	}
	if len(b) < headerSize {
		return pageHeader{}, io.ErrUnexpectedEOF
	}
	h := parseHeader(b)
	if h.id != id {
		return h, fmt.Errorf("it says that it is page %d", h.id)
	}
	if uint64(h.overflow) >= m.pages-id {
		return h, fmt.Errorf("it runs over %d more pages, past the last one", h.overflow)
	}
	return h, nil
}

// checkFreelist reads the page numbers, which bbolt writes in rising order.
func checkFreelist(r io.ReaderAt, m meta, h pageHeader) error {
	body := io.NewSectionReader(r, int64(h.id)*int64(m.pageSize)+headerSize,
		(int64(h.overflow)+1)*int64(m.pageSize)-headerSize)
	count, room := uint64(h.count), uint64(body.Size())/8
	if count == 0xFFFF { // too many for the header: the count is the first entry
		if err := binary.Read(body, binary.NativeEndian, &count); err != nil {
			return err
		}
		room--
	}
	if count > room {
		return fmt.Errorf("it counts %d pages and has room for %d", count, room)
	}
	last, buf := uint64(1), make([]byte, 1<<16)
	for count > 0 {
		b := buf[:min(count*8, uint64(len(buf)))]
		if _, err := io.ReadFull(body, b); err != nil {
			return err
		}
		for ; len(b) > 0; b, count = b[8:], count-1 {
			id := binary.NativeEndian.Uint64(b)
			if id <= last || id >= m.pages {
				return fmt.Errorf("page %d after page %d, of %d pages", id, last, m.pages)
			}
			if id == m.root || id == m.freelist {
				return fmt.Errorf("it calls page %d free, which is in use", id)
			}
			last = id
		}
	}
	return nil
}
