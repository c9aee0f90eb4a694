/// A failure of a store to keep its entries.
enum CacheTestFailure: Error, CustomStringConvertible {
  case loadedSomethingElse
  case notCleared

  var description: String {
    switch self {
    case .loadedSomethingElse: "a loaded image differs from the stored one"
    case .notCleared: "images were left after all were removed"
    }
  }
}
