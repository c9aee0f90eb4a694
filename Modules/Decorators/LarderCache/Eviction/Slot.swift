/// The number of a place for an entry; the places of a cache are made with it and used again and again.
@usableFromInline
struct Slot: Equatable, Sendable, BitwiseCopyable {
  @usableFromInline let index: UInt32

  @inlinable
  init(_ index: UInt32) {
    self.index = index
  }

  /// No place.
  @inlinable static var none: Slot { Slot(.max) }
}
