import Larder

/// The items that a walk through a folder had to omit.
struct WalkProblems {
  /// A path whose content or record could not be read.
  struct Unreadable {
    var path: StoreKey
    var error: SystemError
  }

  /// The paths that could not be read.
  ///
  /// Those of folders end in "/".
  private(set) var unreadable: [Unreadable] = []

  /// The number of paths that are too long for a key.
  private(set) var tooLongCount = 0

  /// The first path that is too long for a key.
  private(set) var firstTooLong: StoreKey?

  mutating func noteUnreadable(_ path: StoreKey, _ error: SystemError) {
    unreadable.append(Unreadable(path: path, error: error))
  }

  mutating func noteTooLong(_ path: StoreKey) {
    tooLongCount += 1
    firstTooLong = firstTooLong ?? path
  }

  /// Returns whether a path may only be missing from the walk because it, or a folder above it, could not be read.
  ///
  /// In this case it is unknown whether the path still exists.
  func mayHide(_ path: StoreKey) -> Bool {
    unreadable.contains { hidden in
      let last = hidden.path.bytes.last
      guard path.hasPrefix(hidden.path) else { return false }
      return last == UInt8(ascii: "/") || path == hidden.path
        || path.bytes[hidden.path.count] == UInt8(ascii: "/")
    }
  }
}
