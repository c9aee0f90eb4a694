// All that needs no C library, so that a program imports this module and its store. Each module is a product of its own, too.
// `LarderMetrics` has only declarations that name the trait `Metrics`, unless the trait is on.
@_exported public import Larder
@_exported public import LarderBatching
@_exported public import LarderBounded
@_exported public import LarderCBOR
@_exported public import LarderCache
@_exported public import LarderExpiry
@_exported public import LarderIndexes
@_exported public import LarderJSON
@_exported public import LarderMetrics
@_exported public import LarderMirror
@_exported public import LarderObservation
@_exported public import LarderQueue
@_exported public import LarderStoreQueue
@_exported public import LarderWorker
