/// A measured step of the test.
enum Step: String, CaseIterable, CodingKeyRepresentable, Encodable {
  case store
  case synchronize
  case load
  case clearAndSynchronize
  case storeAndSynchronizeEach
  case touchHalf

  /// The title of the column.
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
