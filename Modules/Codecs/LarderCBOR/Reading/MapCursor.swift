/// Where the reading of a map stands.
///
/// Fields are looked for where the cursor is: they come in the order in which they were written, which is the order in
/// which a type asks for them. Only when another one stands there, all the keys are listed.
@usableFromInline
struct MapCursor {
  /// The first key.
  @usableFromInline let start: UnsafeRawPointer

  /// The next key, until the keys are listed.
  @usableFromInline var next: UnsafeRawPointer

  /// How many pairs there are from the cursor on; without a bound in a map of indefinite length, 0 once the keys are
  /// listed.
  @usableFromInline var remaining: Int

  /// How many pairs there are; -1 where the map has an indefinite length.
  @usableFromInline let count: Int

  /// The number of the map in the listing, or -1 while its keys are not listed.
  @usableFromInline var listed = -1

  var isIndefinite: Bool { count < 0 }

  @inlinable @inline(__always)
  init(start: UnsafeRawPointer, count: Int) {
    self.start = start
    next = start
    remaining = count < 0 ? .max : count
    self.count = count
  }
}
