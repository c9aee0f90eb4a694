/// A store that does not have what it was given.
enum CacheTestFailure: Error, CustomStringConvertible {
  case loadedSomethingElse
  case notCleared

  var description: String {
    switch self {
    case .loadedSomethingElse: "what was loaded is not what was stored"
    case .notCleared: "there were images left after everything was removed"
    }
  }
}
