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
    /// A read of several keys does not ask whether a load that it joined is still what the base has.
    case trustsJoinedLoads
    /// A reload whose value is not kept leaves the copy.
    case reloadsLeaveCopies
    /// A reload lets the reads and writes that have begun before its end leave copies.
    case reloadsLeaveFills
  }

  struct Copy: Hashable {
    let value: UInt8
    let stamp: Int
  }

  enum Load: Hashable {
    case running
    case done(UInt8)
    case failed
  }

  enum Step: Hashable {
    case look(Int), beginReading, load, endLoad, readDirectly, endReload, wait
    case beginPart(Int), readParts, endPart(Int), waitForPart(Int), lookAgain(Int), readAll
    case beginWrite(Int), removeCopy(Int), writeBase, endWrite(Int)
    case writeElsewhere, beginForgetting, forget, evict
    case done
  }

  struct Caller: Hashable {
    var next: Step
    var hasBegun = false
    /// Whether what it reads may be explained by no order, since somebody wrote past the cache meanwhile.
    var isExcused = false
    var found: [Copy?] = [nil, nil]
    var values: [UInt8] = [0, 0]
    var load = 0
    var hasFailed = false
    var hasChanged = false
    var fills: [Rule.Keys.Fill?] = [nil, nil]
    /// The loads of others that a read of several keys has joined.
    var joined: [Int?] = [nil, nil]
    /// The loads of its own that others may join.
    var led: [Int?] = [nil, nil]
    /// How many writes of `a` the base had seen when the last reload before this caller did.
    var seen = 0
    var keyWrites: [Rule.Keys.KeyWrite?] = [nil, nil]
    var rangeWrites: [Rule.Keys.RangeWrite?] = [nil, nil]
  }

  let operations: [ModelledOperation]
  let shortcuts: Set<Shortcut>
  var base: [UInt8] = [1, 1]
  var copies: [Copy?] = [nil, nil]
  var shards: [Rule]
  var loads: [Load] = []
  private var lastStamp = 0
  var callers: [Caller]
  /// The values that `a` has had in the base, where a reload is to be checked by them.
  private var history: [UInt8] = [1]
  private var seenByReloads = 0
  private var hasServedOlder = false
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
    case .invalidate: .beginForgetting
    case .writeElsewhere, .writeElsewhereAndReload, .writePast: .writeElsewhere
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
      case .waitForPart(let key): callers[index].joined[key].map { loads[$0] != .running } ?? true
      default: true
      }
    }
  }

  /// What is wrong, where all callers are done or none can go on; `nil` where all is well.
  var fault: String? {
    if hasServedOlder { return "a reader got an older value than a reload before it" }
    if orders.isEmpty { return "no order explains what was returned" }
    if let index = callers.firstIndex(where: { $0.next != .done }) { return "caller \(index) waits for ever" }
    for (key, copy) in copies.enumerated() where copy.map({ $0.value != base[key] }) ?? false {
      if key == 0, operations.contains(.writePast) { continue }
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
      callers[index].isExcused = zip(operations, callers).contains {
        $0.isPastTheCache && ($1.next != .done || $0 == .writePast)
      }
      callers[index].seen = seenByReloads
      if isRecorded(index) { orders.begin(index) }
    }
    let step = callers[index].next
    switch step {
    case .look, .beginReading, .load, .endLoad, .readDirectly, .endReload, .wait: read(index, step)
    case .beginPart, .readParts, .endPart, .waitForPart, .lookAgain, .readAll: readBoth(index, step)
    case .beginWrite, .removeCopy, .writeBase, .endWrite: write(index, step)
    case .writeElsewhere, .beginForgetting, .forget, .evict: forget(index, step)
    case .done: break
    }
  }

  private func isRecorded(_ index: Int) -> Bool {
    switch operations[index] {
    case .readAndLeave, .refresh, .writeInVain, .invalidate, .evict: false
    case .read, .readInVain, .reload, .readBoth: !callers[index].isExcused
    default: true
    }
  }

  private var checksReloads: Bool { operations.contains { $0 == .reload || $0 == .writeElsewhereAndReload } }

  private mutating func setBase(_ values: [UInt8]) {
    if checksReloads && values[0] != base[0] { history.append(values[0]) }
    base = values
  }

  private func isReload(_ index: Int) -> Bool {
    operations[index] == .reload || operations[index] == .writeElsewhereAndReload
  }

  /// Checks the value of `a` that a caller has read against what reloads have returned.
  private mutating func checkAge(of value: UInt8, _ index: Int) {
    guard checksReloads, let place = history.lastIndex(of: value) else { return }
    if place < callers[index].seen { hasServedOlder = true }
    if isReload(index) { seenByReloads = max(seenByReloads, place) }
  }

  mutating func finish(_ index: Int, _ a: UInt8 = 0, _ b: UInt8 = 0) {
    callers[index].next = .done
    switch operations[index] {
    case .read, .readInVain, .reload, .readBoth, .writeElsewhereAndReload: checkAge(of: a, index)
    default: break
    }
    guard isRecorded(index), operations[index] != .writeUnknowingly else { return }
    let hasResult = operations[index] != .writeElsewhereAndReload
    orders.end(index, returning: hasResult ? (a, b) : (0, 0), of: operations)
  }

  mutating func fail(_ index: Int) {
    callers[index].next = .done
    if isRecorded(index) { orders.drop(index) }
  }

  mutating func insert(_ value: UInt8, _ key: Int) {
    lastStamp += 1
    copies[key] = Copy(value: value, stamp: lastStamp)
  }

  // MARK: Reading one key

  private mutating func read(_ index: Int, _ step: Step) {
    switch step {
    case .look(let key):
      callers[index].found[key] = copies[key]
      if operations[index] == .readBoth {
        callers[index].next = key == 0 ? .look(1) : .beginPart(0)
      } else if let copy = copies[key] {
        finish(index, copy.value)
      } else {
        callers[index].next = .beginReading
      }
    case .beginReading:
      beginReading(index)
    case .load:
      callers[index].values[0] = base[0]
      callers[index].hasFailed = operations[index] == .readInVain
      callers[index].next = .endLoad
    case .endLoad:
      let (value, hasFailed) = (callers[index].values[0], callers[index].hasFailed)
      let isCurrent = callers[index].fills[0].map { shards[0].end($0) } ?? false
      if isReload(index) { endReload(isCurrent) }
      if isCurrent, !hasFailed { insert(value, 0) }
      loads[callers[index].load] = hasFailed ? .failed : .done(value)
      if hasFailed { fail(index) } else { finish(index, value) }
    case .readDirectly:
      guard operations[index] != .readInVain else { return fail(index) }
      guard isReload(index) else { return finish(index, base[0]) }
      callers[index].values[0] = base[0]
      callers[index].next = .endReload
    case .endReload:
      endReload(false)
      finish(index, callers[index].values[0])
    case .wait:
      if case .done(let value) = loads[callers[index].load] { finish(index, value) } else { fail(index) }
    default:
      break
    }
  }

  private mutating func endReload(_ isCurrent: Bool) {
    if !shortcuts.contains(.reloadsLeaveFills) { shards[0].invalidate(Self.keys[0]) }
    if !isCurrent, !shortcuts.contains(.reloadsLeaveCopies) { copies[0] = nil }
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
      // Somebody may have put a copy there since it was looked for.
      if let copy = copies[0] { return finish(index, copy.value) }
      reading = shards[0].beginReading(key) { load }
    }
    switch reading {
    case .direct:
      callers[index].next = .readDirectly
    case .joining(let fill, let load):
      _ = shards[0].end(fill)
      callers[index].load = load
      callers[index].next = .wait
    case .leading(let fill, let load):
      loads.append(.running)
      callers[index].fills[0] = fill
      callers[index].load = load
      callers[index].next = .load
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
        setBase([after.0, after.1])
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
      setBase([UInt8(2 + index), base[1]])
      switch operations[index] {
      case .writeElsewhere: callers[index].next = .beginForgetting
      case .writePast: finish(index)
      default: callers[index].next = .beginReading
      }
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
  var isPastTheCache: Bool {
    self == .writeElsewhere || self == .writeElsewhereAndReload || self == .writePast
  }
}
