import Larder

/// What a walk through a folder had to leave out.
struct WalkProblems {
  /// A path whose content or record the system did not give.
  struct Unreadable {
    var path: StoreKey
    var error: SystemError
  }

  /// The paths that could not be read; those of folders end in "/".
  private(set) var unreadable: [Unreadable] = []

  /// How many paths are too long for a key.
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

  /// Whether a path was not seen only because it, or a folder around it, could not be read.
  ///
  /// That it is gone is then not known.
  func mayHide(_ path: StoreKey) -> Bool {
    unreadable.contains { hidden in
      let last = hidden.path.bytes.last
      guard path.hasPrefix(hidden.path) else { return false }
      return last == UInt8(ascii: "/") || path == hidden.path
        || path.bytes[hidden.path.count] == UInt8(ascii: "/")
    }
  }
}
