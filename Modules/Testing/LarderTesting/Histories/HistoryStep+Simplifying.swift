import Larder

extension HistoryStep {
  /// Steps of the same kind that do a little less, for making the history of a failure easier to read.
  var simplerSteps: [HistoryStep] {
    switch self {
    case .apply(let changes) where changes.count > 1: HistoryStep.leavingOutOne(of: changes).map { .apply($0) }
    case .add(let number, let keys) where keys.count > 1:
      HistoryStep.leavingOutOne(of: keys).map { .add(number, to: $0) }
    case .abandon(let keys) where keys.count > 1: HistoryStep.leavingOutOne(of: keys).map { .abandon($0) }
    case .values(let keys) where !keys.isEmpty: HistoryStep.leavingOutOne(of: keys).map { .values($0) }
    case .entries(let range, let limit, let order) where limit < .max || range != .all:
      [.entries(.all, limit: .max, order), .entries(range, limit: .max, order), .entries(.all, limit: limit, order)]
    case .keys(let range, let limit, let order) where limit < .max || range != .all:
      [.keys(.all, limit: .max, order), .keys(range, limit: .max, order), .keys(.all, limit: limit, order)]
    case .count(let range) where range != .all: [.count(.all)]
    case .pages(let range, let size, let order) where range != .all: [.pages(.all, size: size, order)]
    default: []
    }
  }

  private static func leavingOutOne<Element>(of list: [Element]) -> [[Element]] {
    list.indices.map { index in
      var list = list
      list.remove(at: index)
      return list
    }
  }
}
