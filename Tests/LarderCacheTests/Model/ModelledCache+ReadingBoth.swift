import Larder

@testable import LarderCache

extension ModelledCache {
  /// Performs the next step of a caller that reads both keys in one call.
  mutating func readBoth(_ index: Int, _ step: Step) {
    switch step {
    case .beginPart(let key):
      beginPart(index, key)
      callers[index].next = key == 0 ? .beginPart(1) : .readParts
    case .readParts:
      for key in 0...1 { callers[index].values[key] = callers[index].found[key]?.value ?? base[key] }
      callers[index].next = .endPart(0)
    case .endPart(let key):
      if let load = callers[index].led[key], let fill = callers[index].fills[key] {
        if shards[key].end(fill) { insert(callers[index].values[key], key) }
        loads[load] = .done(callers[index].values[key])
      }
      callers[index].next = key == 0 ? .endPart(1) : .waitForPart(0)
    case .waitForPart(let key):
      if let load = callers[index].joined[key] {
        if case .done(let value) = loads[load] {
          callers[index].values[key] = value
        } else {
          callers[index].hasFailed = true
        }
      }
      callers[index].next = key == 0 ? .waitForPart(1) : .lookAgain(0)
    case .lookAgain(let key):
      lookAgain(index, key)
      guard key == 1 else { return callers[index].next = .lookAgain(1) }
      if callers[index].hasFailed { return fail(index) }
      if callers[index].hasChanged { return callers[index].next = .readAll }
      finish(index, callers[index].values[0], callers[index].values[1])
    case .readAll:
      finish(index, base[0], base[1])
    default:
      break
    }
  }

  private mutating func beginPart(_ index: Int, _ key: Int) {
    guard callers[index].found[key] == nil else { return }
    if let copy = copies[key] { return callers[index].found[key] = copy }
    let load = loads.count
    switch shards[key].beginReading(Self.keys[key], makeLoad: { load }) {
    case .direct:
      break
    case .joining(let fill, let load):
      callers[index].fills[key] = fill
      callers[index].joined[key] = load
    case .leading(let fill, let load):
      loads.append(.running)
      callers[index].fills[key] = fill
      callers[index].led[key] = load
    }
  }

  private mutating func lookAgain(_ index: Int, _ key: Int) {
    if let copy = callers[index].found[key], copies[key] != copy, !shortcuts.contains(.doesNotLookAgain) {
      callers[index].hasChanged = true
    }
    if callers[index].joined[key] != nil, let fill = callers[index].fills[key], !shards[key].end(fill),
      !shortcuts.contains(.trustsJoinedLoads)
    {
      callers[index].hasChanged = true
    }
  }
}
