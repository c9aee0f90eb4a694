import Larder

/// Which parts of a group are still to be committed, where the whole of it could not be: plain state.
///
/// A part that fails for something in it is tried again in halves, in order, down to single calls, so that one bad call
/// among a thousand costs some twenty commits and not a thousand.
struct GroupRetry {
  // The next one is the last.
  private var parts: [Range<Int>]

  /// Begins with the whole group.
  ///
  /// - Parameter count: How many calls the group has.
  init(count: Int) {
    parts = count > 0 ? [0..<count] : []
  }

  /// The calls to commit next, together; `nil` where none is left.
  mutating func next() -> Range<Int>? {
    parts.popLast()
  }

  /// A part has failed for something in it, and is to be tried in halves.
  ///
  /// - Returns: Whether it can be: a single call has no halves.
  mutating func halve(_ part: Range<Int>) -> Bool {
    guard part.count > 1 else { return false }
    let middle = part.lowerBound + part.count / 2
    parts.append(middle..<part.upperBound)
    parts.append(part.lowerBound..<middle)
    return true
  }
}
