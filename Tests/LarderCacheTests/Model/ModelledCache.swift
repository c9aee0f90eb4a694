import Larder

@testable import LarderCache

/// A cache over a base with two keys, in shards of their own, and some callers, of whom one makes one step at a time:
/// what `CachedStore` does, without threads.
struct ModelledCache<Rule: CachingRule>: Hashable {
  static var keys: [StoreKey] { ["a", "b"] }

  /// What a caller can leave out that `CachedStore` does.
  enum Shortcut: Hashable, CaseIterable {
    /// A read of several keys does not look again at those that it found.
    case doesNotLookAgain
    /// A write removes the copy before it makes the key busy.
    case removesCopiesEarly
    /// A write does not remove the copy.
    case leavesCopies
    /// A write that failed keeps its value.
    case keepsFailedValues
  }

  private struct Copy: Hashable {
    let value: UInt8
    let stamp: Int
  }

  private enum Load: Hashable {
    case running
    case done(UInt8)
    case failed
  }

  private enum Step: Hashable {
    case look(Int), beginReading, peek, load, endLoad, readDirectly, wait
    case beginFill(Int), readMissing, lookAgain(Int), readAll, endFill(Int)
    case beginScan(Int), readScan, endScan(Int)
    case beginWrite(Int), removeCopy(Int), writeBase, endWrite(Int)
    case writeElsewhere, beginForgetting, forget, evict
    case done
  }

  private struct Caller: Hashable {
    var next: Step
    var hasBegun = false
    /// Whether what it reads may be explained by no order, since somebody wrote past the cache meanwhile.
    var isExcused = false
    var found: [Copy?] = [nil, nil]
    var values: [UInt8] = [0, 0]
    var load = 0
    var hasFailed = false
    var isFound = false
    var hasChanged = false
    var fills: [Rule.Keys.Fill?] = [nil, nil]
    var scans: [Rule.Keys.Scan?] = [nil, nil]
    var keyWrites: [Rule.Keys.KeyWrite?] = [nil, nil]
    var rangeWrites: [Rule.Keys.RangeWrite?] = [nil, nil]
  }

  let operations: [ModelledOperation]
  let shortcuts: Set<Shortcut>
  private var base: [UInt8] = [1, 1]
  private var copies: [Copy?] = [nil, nil]
  private var shards: [Rule]
  private var loads: [Load] = []
  private var lastStamp = 0
  private var callers: [Caller]
  private(set) var orders: ModelledOrders

  /// - Parameters:
  ///   - operations: What each of the callers does.
  ///   - isWarm: Whether the cache holds both keys at first.
  ///   - rule: What the shards begin with.
  ///   - shortcuts: What the callers leave out.
  init(_ operations: [ModelledOperation], isWarm: Bool, rule: Rule, shortcuts: Set<Shortcut> = []) {
    self.operations = operations
    self.shortcuts = shortcuts
    shards = [rule, rule]
    orders = ModelledOrders([1, 1])
    callers = operations.map { Caller(next: Self.firstStep(of: $0, shortcuts)) }
    if isWarm { for key in 0...1 { insert(1, key) } }
  }

  private static func firstStep(of operation: ModelledOperation, _ shortcuts: Set<Shortcut>) -> Step {
    switch operation {
    case .read, .readAndLeave, .readInVain, .readBoth: .look(0)
    case .reload, .refresh: .beginReading
    case .scan: .beginScan(0)
    case .invalidate: .beginForgetting
    case .writeElsewhere, .writeElsewhereAndReload: .writeElsewhere
    case .evict: .evict
    default: shortcuts.contains(.removesCopiesEarly) ? .removeCopy(0) : .beginWrite(0)
    }
  }

  // MARK: Going on

  /// The callers who can make a step.
  var ready: [Int] {
    callers.indices.filter { index in
      switch callers[index].next {
      case .done: false
      case .wait: loads[callers[index].load] != .running
      default: true
      }
    }
  }

  /// What is wrong, where all callers are done or none can go on; `nil` where all is well.
  var fault: String? {
    if orders.isEmpty { return "no order explains what was returned" }
    if let index = callers.firstIndex(where: { $0.next != .done }) { return "caller \(index) waits for ever" }
    for (key, copy) in copies.enumerated() where copy.map({ $0.value != base[key] }) ?? false {
      return "the copy of \(Self.keys[key]) is not what the base has"
    }
    return shards.allSatisfy(\.isIdle) ? nil : "a shard believes that something goes on"
  }

  /// What a caller would do next, for people to read.
  func text(of caller: Int) -> String { "\(caller): \(operations[caller]), \(callers[caller].next)" }

  /// Lets a caller make its next step.
  mutating func go(_ index: Int) {
    if !callers[index].hasBegun {
      callers[index].hasBegun = true
      callers[index].isExcused = zip(operations, callers).contains { $0.isPastTheCache && $1.next != .done }
      if isRecorded(index) { orders.begin(index) }
    }
    let step = callers[index].next
    switch step {
    case .look, .beginReading, .peek, .load, .endLoad, .readDirectly, .wait: read(index, step)
    case .beginFill, .readMissing, .lookAgain, .readAll, .endFill: readBoth(index, step)
    case .beginScan, .readScan, .endScan: scan(index, step)
    case .beginWrite, .removeCopy, .writeBase, .endWrite: write(index, step)
    case .writeElsewhere, .beginForgetting, .forget, .evict: forget(index, step)
    case .done: break
    }
  }

  private func isRecorded(_ index: Int) -> Bool {
    switch operations[index] {
    case .readAndLeave, .refresh, .writeInVain, .invalidate, .evict: false
    case .read, .readInVain, .reload, .readBoth, .scan: !callers[index].isExcused
    default: true
    }
  }

  private mutating func finish(_ index: Int, _ a: UInt8 = 0, _ b: UInt8 = 0) {
    callers[index].next = .done
    guard isRecorded(index), operations[index] != .writeUnknowingly else { return }
    let hasResult = operations[index] != .writeElsewhereAndReload
    orders.end(index, returning: hasResult ? (a, b) : (0, 0), of: operations)
  }

  private mutating func fail(_ index: Int) {
    callers[index].next = .done
    if isRecorded(index) { orders.drop(index) }
  }

  private mutating func insert(_ value: UInt8, _ key: Int) {
    lastStamp += 1
    copies[key] = Copy(value: value, stamp: lastStamp)
  }

  // MARK: Reading one key

  private mutating func read(_ index: Int, _ step: Step) {
    switch step {
    case .look(let key):
      callers[index].found[key] = copies[key]
      if operations[index] == .readBoth {
        callers[index].next = key == 0 ? .look(1) : .beginFill(0)
      } else if let copy = copies[key] {
        finish(index, copy.value)
      } else {
        callers[index].next = .beginReading
      }
    case .beginReading:
      beginReading(index)
    case .peek:
      // Somebody may have put a copy there since it was looked for.
      callers[index].values[0] = copies[0]?.value ?? 0
      callers[index].isFound = copies[0] != nil
      callers[index].next = copies[0] == nil ? .load : .endLoad
    case .load:
      callers[index].values[0] = base[0]
      callers[index].hasFailed = operations[index] == .readInVain
      callers[index].next = .endLoad
    case .endLoad:
      let (value, hasFailed) = (callers[index].values[0], callers[index].hasFailed)
      if let fill = callers[index].fills[0], shards[0].end(fill), !hasFailed, !callers[index].isFound {
        insert(value, 0)
      }
      loads[callers[index].load] = hasFailed ? .failed : .done(value)
      if hasFailed { fail(index) } else { finish(index, value) }
    case .readDirectly:
      if operations[index] == .readInVain { fail(index) } else { finish(index, base[0]) }
    case .wait:
      if case .done(let value) = loads[callers[index].load] { finish(index, value) } else { fail(index) }
    default:
      break
    }
  }

  private mutating func beginReading(_ index: Int) {
    let load = loads.count
    let key = Self.keys[0]
    let reading: Rule.Keys.Reading
    switch operations[index] {
    case .refresh:
      guard let (fill, load) = shards[0].beginRefreshing(key, makeLoad: { load }) else { return finish(index) }
      reading = .leading(fill, load)
    case .reload, .writeElsewhereAndReload:
      reading = shards[0].beginReloading(key) { load }
    default:
      reading = shards[0].beginReading(key) { load }
    }
    switch reading {
    case .direct:
      callers[index].next = .readDirectly
    case .joining(let load):
      callers[index].load = load
      callers[index].next = .wait
    case .leading(let fill, let load):
      loads.append(.running)
      callers[index].fills[0] = fill
      callers[index].load = load
      switch operations[index] {
      case .refresh, .reload, .writeElsewhereAndReload: callers[index].next = .load
      default: callers[index].next = .peek
      }
    }
  }

  // MARK: Reading both keys

  private mutating func readBoth(_ index: Int, _ step: Step) {
    let found = callers[index].found
    switch step {
    case .beginFill(let key):
      if found[key] == nil { callers[index].fills[key] = shards[key].beginFill(of: Self.keys[key]) }
      callers[index].next = key == 0 ? .beginFill(1) : .readMissing
    case .readMissing:
      for key in 0...1 { callers[index].values[key] = found[key]?.value ?? base[key] }
      callers[index].next = shortcuts.contains(.doesNotLookAgain) ? .endFill(0) : .lookAgain(0)
    case .lookAgain(let key):
      if let copy = found[key], copies[key] != copy { callers[index].hasChanged = true }
      callers[index].next = key == 0 ? .lookAgain(1) : callers[index].hasChanged ? .readAll : .endFill(0)
    case .readAll:
      callers[index].values = base
      callers[index].next = .endFill(0)
    case .endFill(let key):
      if let fill = callers[index].fills[key], shards[key].end(fill) { insert(callers[index].values[key], key) }
      if key == 0 {
        callers[index].next = .endFill(1)
      } else {
        finish(index, callers[index].values[0], callers[index].values[1])
      }
    default:
      break
    }
  }

  private mutating func scan(_ index: Int, _ step: Step) {
    switch step {
    case .beginScan(let key):
      callers[index].scans[key] = shards[key].beginScan()
      callers[index].next = key == 0 ? .beginScan(1) : .readScan
    case .readScan:
      callers[index].values = base
      callers[index].next = .endScan(0)
    case .endScan(let key):
      if let scan = callers[index].scans[key], shards[key].allows(scan), copies[key] == nil {
        insert(callers[index].values[key], key)
      }
      if key == 0 {
        callers[index].next = .endScan(1)
      } else {
        finish(index, callers[index].values[0], callers[index].values[1])
      }
    default:
      break
    }
  }

  // MARK: Writing

  private func touchesBoth(_ index: Int) -> Bool {
    switch operations[index] {
    case .writeBoth, .removeRange, .replaceRange: true
    default: false
    }
  }

  private mutating func write(_ index: Int, _ step: Step) {
    let isEarly = shortcuts.contains(.removesCopiesEarly)
    switch step {
    case .beginWrite(let key):
      beginWrite(index, key)
      let last: Step = isEarly ? .writeBase : .removeCopy(0)
      callers[index].next = key == 0 && touchesBoth(index) ? .beginWrite(1) : last
    case .removeCopy(let key):
      if !shortcuts.contains(.leavesCopies) { copies[key] = nil }
      let last: Step = isEarly ? .beginWrite(0) : .writeBase
      callers[index].next = key == 0 && touchesBoth(index) ? .removeCopy(1) : last
    case .writeBase:
      callers[index].values = base
      callers[index].hasFailed = operations[index] == .writeInVain || operations[index] == .writeUnknowingly
      if operations[index] != .writeInVain {
        let after = operations[index].values(a: base[0], b: base[1], writing: UInt8(2 + index))
        base = [after.0, after.1]
      }
      callers[index].next = .endWrite(0)
    case .endWrite(let key):
      endWrite(index, key)
      if key == 0 && touchesBoth(index) {
        callers[index].next = .endWrite(1)
      } else {
        finish(index, operations[index] == .update ? callers[index].values[0] : 0)
      }
    default:
      break
    }
  }

  private mutating func beginWrite(_ index: Int, _ key: Int) {
    switch operations[index] {
    case .removeRange:
      callers[index].rangeWrites[key] = shards[key].beginWrite(in: .all)
    case .replaceRange:
      let rangeWrite = shards[key].beginWrite(in: .all)
      callers[index].rangeWrites[key] = rangeWrite
      if key == 0 {
        callers[index].keyWrites[0] = shards[0].beginWrite(of: Self.keys[0], besides: [rangeWrite])
      }
    default:
      callers[index].keyWrites[key] = shards[key].beginWrite(of: Self.keys[key], besides: [])
    }
  }

  private mutating func endWrite(_ index: Int, _ key: Int) {
    let value = operations[index].values(a: 0, b: 0, writing: UInt8(2 + index))
    let isKept = !callers[index].hasFailed || shortcuts.contains(.keepsFailedValues)
    if let write = callers[index].keyWrites[key], shards[key].end(write), isKept {
      insert(key == 0 ? value.0 : value.1, key)
    }
    if let write = callers[index].rangeWrites[key] { shards[key].end(write) }
  }

  // MARK: Forgetting

  private mutating func forget(_ index: Int, _ step: Step) {
    switch step {
    case .writeElsewhere:
      base[0] = UInt8(2 + index)
      callers[index].next = operations[index] == .writeElsewhere ? .beginForgetting : .beginReading
    case .beginForgetting:
      shards[0].invalidate(Self.keys[0])
      callers[index].next = .forget
    default:
      copies[0] = nil
      finish(index)
    }
  }
}

extension ModelledOperation {
  /// Whether it writes past the cache.
  var isPastTheCache: Bool { self == .writeElsewhere || self == .writeElsewhereAndReload }
}
