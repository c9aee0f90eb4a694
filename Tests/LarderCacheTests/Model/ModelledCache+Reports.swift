import Larder

@testable import LarderCache

extension ModelledCache {
  /// A key or a range that the base names in a report, for the shard of one key.
  enum Mention: Hashable {
    case key(Int)
    case range(Int)
  }

  /// The keys and ranges that the base names in its report of a caller's write.
  func mentions(by index: Int) -> [Mention] {
    guard isReported else { return [] }
    switch operations[index] {
    case .writeInVain: return []
    case .updateNothing: return []
    case .writeAbroad: return [.key(0), .key(0)]
    case .writeAbroadUnheard: return [.range(0), .range(1)]
    case .writeBoth, .writeBothBeside: return [.key(0), .key(1)]
    case .removeRange, .removeRangeBeside: return [.range(0), .range(1)]
    case .replaceRange: return [.range(0), .range(1), .key(0)]
    case .writeJoined: return [.key(0), .key(0)]
    default: return [.key(0)]
    }
  }

  mutating func report(_ index: Int, _ step: Step) {
    let mentions = mentions(by: index)
    switch step {
    case .writeBeside:
      let after = operations[index].values(a: base[0], b: base[1], writing: UInt8(2 + index))
      setBase([after.0, after.1], index)
      callers[index].next = operations[index].isAbroad ? .lag : .report(0)
    case .lag:
      // A second has passed. From now on, no reader may get what was there before.
      lag(since: index)
      callers[index].next = .report(0)
    case .report(let place):
      callers[index].next = .forgetReported(place)
      switch mentions[place] {
      case .range(let key):
        shards[key].invalidate(in: .all)
      case .key(let key):
        if shortcuts.contains(.reportsCountOnce), operations[index] != .writeAbroad,
          mentions[..<place].contains(.key(key))
        {
          return
        }
        if shortcuts.contains(.reportsLeaveCopiesOfBusyKeys), shards[key].isBusy(Self.keys[key]) {
          callers[index].next = next(after: place, of: mentions, index)
        }
        shards[key].report(Self.keys[key])
      }
    case .forgetReported(let place):
      switch mentions[place] {
      case .range(let key), .key(let key): if !shortcuts.contains(.reportsLeaveCopies) { copies[key] = nil }
      }
      callers[index].next = next(after: place, of: mentions, index)
    default:
      break
    }
    if callers[index].next == .done {
      if operations[index].isAbroad { laggingCount -= 1 }
      finish(index)
    }
  }

  private func next(after place: Int, of mentions: [Mention], _ index: Int) -> Step {
    if place + 1 < mentions.count { return .report(place + 1) }
    return operations[index].isBeside ? .done : .endWrite(0)
  }
}
