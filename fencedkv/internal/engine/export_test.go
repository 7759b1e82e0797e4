package engine

// MarkSize is what a claim counts.
var MarkSize = markSize

// Overlay opens overlay to its test.
type Overlay struct{ o overlay }

func (o *Overlay) Set(key string, record []byte) (grown int, added bool) { return o.o.set(key, record) }

func (o *Overlay) Get(key string) (string, []byte, bool) { return open(o.o.get(key)) }

func (o *Overlay) Ceil(key string) (string, []byte, bool) { return open(o.o.ceil(key)) }

func (o *Overlay) Below(key string) (string, []byte, bool) { return open(o.o.below(key)) }

func (o *Overlay) Last() (string, []byte, bool) { return open(o.o.last()) }

func open(p pending, found bool) (string, []byte, bool) { return p.key, p.record, found }
