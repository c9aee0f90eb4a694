/// A place for one value, and the map or array that is written there.
///
/// Levels lie in the order in which they were opened. Those that are closed stay until the value to which they belong is
/// finished, because its type may still write to them.
struct EncodingLevel {
  /// What was asked for at the place.
  enum Kind: UInt8 {
    /// Nothing yet, or a single value.
    case single
    case map
    case array

    var major: UInt8 {
      switch self {
      case .single, .map: 0xA0
      case .array: 0x80
      }
    }
  }

  /// A number that no other level of the same state has.
  let id: Int

  /// The number under which its keyed container knows it; 0 while it has none.
  var containerID = 0

  /// The level around it, or -1.
  let parent: Int

  /// Where its bytes begin.
  var start: Int

  /// Where its bytes end, once it is closed.
  var end = 0

  /// How many items were written into it, while it is not the innermost one that is open.
  var itemCount = 0

  /// Which keys they had, while it is not the innermost one that is open.
  var keyBits: UInt64 = 0

  /// How deep the place lies.
  let depth: Int

  var kind: Kind
  var isOpen = true

  /// The number of the fragment with what was written after the level was closed, or -1.
  var fragment = -1
}
