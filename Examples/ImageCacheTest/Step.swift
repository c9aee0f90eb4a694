/// A step of the test that is measured.
enum Step: String, CaseIterable, CodingKeyRepresentable, Encodable {
  case store
  case synchronize
  case load
  case clearAndSynchronize
  case storeAndSynchronizeEach
  case touchHalf

  /// What stands above its column.
  var title: String {
    switch self {
    case .store: "store"
    case .synchronize: "synchronize"
    case .load: "load"
    case .clearAndSynchronize: "clear and sync"
    case .storeAndSynchronizeEach: "store and sync each"
    case .touchHalf: "touch half"
    }
  }
}
