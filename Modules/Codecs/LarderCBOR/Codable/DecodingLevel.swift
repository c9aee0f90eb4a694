/// A place with one value, and how far it has been read.
struct DecodingLevel {
  /// A number that no other level of the same state has.
  let id: Int

  /// The number under which its keyed container knows it; 0 while it has none.
  var containerID = 0

  /// The first byte of the value.
  let start: UnsafeRawPointer

  /// How deep the place lies.
  let depth: Int

  /// What was asked for at the place.
  var kind = Kind.single

  /// The end of the value, once it is known.
  var end: UnsafeRawPointer?

  /// The fields, of a map.
  var map: MapCursor

  /// The next element, of an array.
  var next: UnsafeRawPointer

  /// How many elements follow; -1 where the length is indefinite.
  var remaining = 0

  enum Kind {
    /// Nothing yet, or a single value.
    case single
    case map
    case array
  }

  init(id: Int, start: UnsafeRawPointer, depth: Int) {
    self.id = id
    self.start = start
    self.depth = depth
    next = start
    map = MapCursor(start: start, count: 0)
  }
}
