/// A change to the names on a ``SimulatedDisk`` that is not durable yet.
///
/// It is whole or not at all, also where it concerns two directories.
enum SimulatedNameChange {
  /// A name in a directory.
  struct Place: Equatable {
    var directory: Int
    var name: String
  }

  case add(Place, node: Int)
  case remove(Place)
  case rename(Place, to: Place, node: Int)

  /// The directories whose names it changes.
  var directories: [Int] {
    switch self {
    case .add(let place, _), .remove(let place): [place.directory]
    case .rename(let place, let newPlace, _): [place.directory, newPlace.directory]
    }
  }
}
