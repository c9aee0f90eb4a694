import Foundation
import Larder
import LarderTesting

/// A store that adds one fault, or none, to a correct store.
final class MutantStore<Base: DataStore>: DataStore where Base.Value == SampleValue? {
  typealias Value = SampleValue?

  private struct State: Sendable {
    var isClosed = false
    var firstValues: [StoreKey: SampleValue??] = [:]
    /// The acknowledged changes that are not written yet.
    var waiting: [BatchChange<SampleValue?>] = []
    /// The removed entries with their former values.
    var removed: [StoreKey: SampleValue?] = [:]
    /// A Boolean value that indicates whether an update runs that excludes other updates, but no plain writes.
    var isUpdating = false
  }

  let information: StoreInformation
  private let base: Base
  private let fault: Fault?
  private let isReopened: Bool
  private let state = Locked(State())
  private let observers = StoreObservers()

  init(_ base: Base, fault: Fault?, isReopened: Bool = false) {
    self.base = base
    self.fault = fault
    self.isReopened = isReopened
    information = base.information
  }

  func value(forKey key: StoreKey) async throws -> Value? {
    try await guarding(key, lenient: nil) {
      if fault == .givesStaleValues { return firstSeen(try await base.value(forKey: key), forKey: key) }
      let value = try await seen(damageAt: key) { try await base.value(forKey: mapped(key)) }
      if fault == .missingThrows, value == nil {
        throw StoreError(.notFound, during: .value, store: information.name, key: key, message: "it is missing")
      }
      return value
    }
  }

  /// Returns the value from the first read of the key.
  private func firstSeen(_ current: Value?, forKey key: StoreKey) -> Value? {
    state.withLock { state in
      let first = state.firstValues[key] ?? current
      if first != nil { state.firstValues[key] = first }
      return first
    }
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    if fault == .answersTrivialCallsWhenClosed, keys.isEmpty { return [] }
    return try await guarding(keys.first { !isValid($0) } ?? "a", lenient: keys.map { _ in nil }) {
      switch fault {
      case .sortsMultiGet: return try await base.values(forKeys: keys.sorted())
      case .dropsMissingSlots: return try await base.values(forKeys: keys).filter { $0 != nil }
      case .foldsDuplicateKeys:
        var seen: Set<StoreKey> = []
        return try await base.values(forKeys: keys.filter { seen.insert($0).inserted })
      case .damagedIsMissing: return try await keys.asyncMap { try await self.value(forKey: $0) }
      case .givesStaleMultiGet:
        return zip(keys, try await base.values(forKeys: keys)).map { firstSeen($1, forKey: $0) }
      case .cutsMultiGetAt999 where keys.count > 999:
        return try await base.values(forKeys: Array(keys.prefix(999))) + keys.dropFirst(999).map { _ in nil }
      case .readsKeyByKey where !keys.isEmpty:
        return try await keys.asyncMap { key in
          await Task.yield()
          return try await self.base.value(forKey: key)
        }
      default: return try await base.values(forKeys: keys.map(mapped))
      }
    }
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    if fault == .answersTrivialCallsWhenClosed, limit == 0 { return [] }
    return try await guarding("a", lenient: []) {
      if takesNegativeLimits, limit < 0 { return [] }
      if fault == .limitBeforeReversing {
        return order == .ascending
          ? try await base.entries(in: range, limit: limit, order: order)
          : try await base.entries(in: range, limit: limit, order: .ascending).reversed()
      }
      let (range, limit, order) = changed(range, limit, order)
      if fault == .damageHidesScan {
        _ = try await base.entries(in: .all, limit: .max, order: order)
      }
      do {
        let entries = try await base.entries(in: range, limit: limit, order: order)
        if fault == .lastKeyMissing, entries.count > 1 { return Array(entries.dropLast()) }
        if fault == .comparesSigned { return entries.sorted { MutantStore.isBelow($0.key, $1.key, order) } }
        if fault == .storedNilIsMissing { return entries.filter { $0.value != nil } }
        return entries
      } catch let error as StoreError where fault == .damagedIsDeleted && error.code == .corrupted {
        if let key = error.key { try await base.removeValue(forKey: key) }
        throw error
      }
    }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    if fault == .answersTrivialCallsWhenClosed, limit == 0 { return [] }
    if fault == .takesEmptyKey, range == .only("") { return [] }
    return try await guarding("a", lenient: []) {
      if takesNegativeLimits, limit < 0 { return [] }
      let (range, limit, order) = changed(range, limit, order)
      if fault == .scansKeysInHalves, range == .all, limit == .max {
        let low = try await base.keys(in: ..<"k140", limit: limit, order: order)
        await Task.yield()
        let high = try await base.keys(in: "k140"..., limit: limit, order: order)
        return order == .ascending ? low + high : high + low
      }
      let keys = try await base.keys(in: range, limit: limit, order: order)
      if fault == .comparesSigned { return keys.sorted { MutantStore.isBelow($0, $1, order) } }
      return fault == .lastKeyMissing && keys.count > 1 ? Array(keys.dropLast()) : keys
    }
  }

  private static func isBelow(_ left: StoreKey, _ right: StoreKey, _ order: ScanOrder) -> Bool {
    let (left, right) = order == .ascending ? (left, right) : (right, left)
    return left.bytes.map { Int8(bitPattern: $0) }.lexicographicallyPrecedes(
      right.bytes.map { Int8(bitPattern: $0) })
  }

  func count(in range: KeyRange) async throws -> Int {
    try await guarding("a", lenient: 0) {
      try await base.count(in: fault == .countsEverything ? .all : changed(range, .max, .ascending).0)
    }
  }

  func apply(_ changes: ChangeBatch<Value>) async throws {
    var equal: Set<StoreKey> = []
    if fault == .hidesEqualBatches {
      for change in changes.changes {
        switch change {
        case .set(let key, let value): if try await base.value(forKey: key) == value { equal.insert(key) }
        case .remove(let key): if try await base.value(forKey: key) == nil { equal.insert(key) }
        case .removeAll: break
        }
      }
    }
    let reported = changes.changes.compactMap { [equal] change -> StoreChange? in
      switch change {
      case .set(let key, _), .remove(let key): equal.contains(key) ? nil : .key(key)
      case .removeAll(let range): fault == .reportsNoRangeRemovals ? nil : .range(range)
      }
    }
    try await reporting(reported) { try await write(changes) }
  }

  private func write(_ changes: ChangeBatch<Value>) async throws {
    if fault == .checksCancellationBeforeClosed { try Task.checkCancellation() }
    if fault == .losesWritesWhileClosing, state.withLock({ $0.isClosed }) { return }
    let invalid = changes.changes.lazy.compactMap(\.key).first { !self.isValid($0) }
    try await guarding(invalid ?? "a", lenient: ()) {
      var list = changes.changes
      switch fault {
      case .dropsRemovals: list.removeAll { if case .remove = $0 { true } else { false } }
      case .ignoresRangeRemovals: list.removeAll { if case .removeAll = $0 { true } else { false } }
      case .losesLastChange where list.count > 1: list.removeLast()
      case .lastChangeFirst where list.count > 1: list.insert(list.removeLast(), at: 0)
      case .appliesOneByOne, .keepsPartOfRefusedBatch:
        if fault == .appliesOneByOne { try information.check(changes) }
        for change in list {
          try await base.apply([change])
          await Task.yield()
        }
        return
      case .foldsCase, .foldsComposition, .composesText:
        list = list.map { change in
          switch change {
          case .set(let key, var value?) where fault == .composesText:
            value.text = value.text.precomposedStringWithCanonicalMapping
            return .set(key, value)
          case .set(let key, let value): return .set(mapped(key), value)
          case .remove(let key): return .remove(mapped(key))
          case .removeAll: return change
          }
        }
      case .losesAnEntryAbove4MiB:
        let sizes = list.map { if case .set(_, let value?) = $0 { value.text.utf8.count } else { 0 } }
        if sizes.reduce(0, +) > 4 << 20 { list.removeFirst() }
      case .ignoresCancellation:
        try await outsideCancellation { try await self.base.apply(changes) }
        return
      case .removesUpperBoundToo, .removesEverything:
        list = list.map { change in
          guard case .removeAll(let range) = change, !range.isEmpty else { return change }
          return .removeAll(
            fault == .removesEverything
              ? .all : KeyRange(from: range.lowerBound, upTo: range.upperBound?.successor))
        }
      case .removalOfMissingThrows:
        for case .remove(let key) in list where try await !base.contains(key) {
          throw StoreError(.notFound, during: .apply, store: information.name, key: key, message: "it is missing")
        }
      case .swallowsEncodingErrors, .swallowsErrorsOfApply:
        do {
          try await base.apply(changes)
        } catch let error as StoreError {
          guard fault == .swallowsErrorsOfApply || error.code == .encodingFailed else { throw error }
        }
        return
      case .truncatesText, .emptyTextIsNil:
        list = list.map { change in
          guard case .set(let key, var value?) = change else { return change }
          if fault == .emptyTextIsNil, value == SampleValue("") { return .set(key, nil) }
          if fault == .truncatesText { value.text = String(value.text.prefix(1_000)) }
          return .set(key, value)
        }
      case .acknowledgesBeforeWriting:
        try information.check(changes)
        try Task.checkCancellation()
        state.withLock { $0.waiting += list }
        return
      case .resurrectsRemoved:
        for case .remove(let key) in list {
          let value = try await base.value(forKey: key)
          state.withLock { if let value { $0.removed[key] = value } }
        }
      default: break
      }
      try await base.apply(ChangeBatch(list))
    }
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    let assigned = Locked<[StoreKey]>([])
    var reported: [StoreKey] {
      switch fault {
      case .reportsNoUpdates: []
      case .reportsUnassigned, .reportsBeforeTheCommit: keys
      default: assigned.withLock { $0 }
      }
    }
    return try await reporting(reported.map(StoreChange.key)) {
      try await write(keys) { [fault] slots in
        let stored = keys.indices.map { slots[$0] }
        let decision = body(&slots)
        var indices = decision.isCommit ? slots.assignedIndices : []
        if fault == .hidesEqualAssignments { indices.removeAll { slots[$0] == stored[$0] } }
        let changed = indices.map { keys[$0] }
        assigned.withLock { $0 = changed }
        return decision
      }
    }
  }

  private func write<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout UpdateSlots<Value>) -> UpdateDecision<Result>
  ) async throws -> Result {
    try await guarding(keys.first { !isValid($0) } ?? "a", lenient: nil) { () async throws -> Result? in
      switch fault {
      case .updateNotAtomic:
        var slots = UpdateSlots(stored: try await base.values(forKeys: keys))
        await Task.yield()
        let decision = body(&slots)
        if decision.isCommit { try await base.apply(ChangeBatch(slots.changes(of: keys))) }
        return decision.result
      case .updateIgnoresPlainWrites:
        while !state.withLock({ state in
          defer { state.isUpdating = true }
          return !state.isUpdating
        }) { await Task.yield() }
        defer { state.withLock { $0.isUpdating = false } }
        var slots = UpdateSlots(stored: try await base.values(forKeys: keys))
        let decision = body(&slots)
        for change in decision.isCommit ? slots.changes(of: keys) : [] {
          await Task.yield()
          try await base.apply([change])
        }
        return decision.result
      case .updateReadsEarly:
        let early = try await base.values(forKeys: keys)
        await Task.yield()
        return try await base.update(deciding: keys) { slots in
          var seen = UpdateSlots(stored: early)
          let decision = body(&seen)
          for index in seen.assignedIndices { slots[index] = seen[index] }
          return decision
        }
      case .updateIgnoresRemovals, .updateLosesLastKey:
        return try await base.update(deciding: keys) { [fault] slots in
          let old = slots
          let decision = body(&slots)
          if fault == .updateIgnoresRemovals { slots.assign(zip(old, slots).map { $1 ?? $0 }) }
          if fault == .updateLosesLastKey, let last = old.indices.last, last > 0 { slots[last] = old[last] }
          return decision
        }
      case .updateCommitsDiscarded:
        return try await base.update(deciding: keys) { slots in .commit(body(&slots).result) }
      case .updateDiscardsCommitted:
        return try await base.update(deciding: keys) { slots in .discard(body(&slots).result) }
      case .updateRunsTwice:
        return try await base.update(deciding: keys) { slots in
          var copy = slots
          _ = body(&copy)
          return body(&slots)
        }
      case .updateTakesDuplicateKeys where Set(keys).count < keys.count:
        var seen: Set<StoreKey> = []
        return try await base.update(deciding: keys.filter { seen.insert($0).inserted }) { slots in
          var all = UpdateSlots(stored: keys.map { _ in nil as Value? })
          defer { slots.assign(slots.map { _ in nil }) }
          return body(&all)
        }
      case .updateRemovesUnassigned:
        return try await base.update(deciding: keys) { slots in
          let decision = body(&slots)
          for index in slots.indices where !slots.isAssigned(index) { slots[index] = nil }
          return decision
        }
      case .ignoresCancellation:
        return try await outsideCancellation { try await self.base.update(deciding: keys, body) }
      case .checksCancellationAfterwards:
        let result = try await base.update(deciding: keys, body)
        try Task.checkCancellation()
        return result
      default: return try await base.update(deciding: keys.map(mapped), body)
      }
    }.unwrapped()
  }

  func synchronize() async throws {
    if fault == .synchronizeHeedsCancellation { try Task.checkCancellation() }
    try await guarding("a", lenient: ()) { try await base.synchronize() }
  }

  /// Performs a write, and reports it even if it fails.
  private func reporting<Result>(
    _ changes: @autoclosure () -> [StoreChange], _ write: () async throws -> Result
  ) async throws -> Result {
    if fault == .reportsBeforeTheCommit { observers.report(changes()) }
    defer { if fault != .reportsBeforeTheCommit { observers.report(changes()) } }
    return try await write()
  }

  func close() async throws {
    defer { observers.close() }
    let wasClosed = state.withLock { state in
      defer { state.isClosed = true }
      return state.isClosed
    }
    switch fault {
    case .answersWhenClosed, .closesWithoutWaiting, .keepsLock: return
    case .acknowledgesBeforeWriting where !wasClosed: try await writeWaiting()
    case .resurrectsRemoved where !wasClosed:
      let removed = state.withLock { $0.removed }
      for (key, value) in removed where try await !base.contains(key) { try await base.setValue(value, forKey: key) }
    case .closesOnlyOnce where wasClosed: throw information.closedError(for: .close)
    case .forgetsOnClose where !wasClosed: try await base.removeAll()
    default: break
    }
    try await base.close()
  }

  // MARK: Faults of every operation

  private func guarding<Result>(
    _ key: StoreKey, lenient: Result, _ body: () async throws -> Result
  ) async throws -> Result {
    if fault == .keepsLock, state.withLock({ $0.isClosed }) { throw information.closedError(for: .value) }
    if fault == .acknowledgesBeforeWriting, !key.isEmpty { try await writeWaiting() }
    if fault == .closesWithoutWaiting, state.withLock({ $0.isClosed }) { throw information.closedError(for: .value) }
    if fault == .takesEmptyKey, key.isEmpty { return lenient }
    if fault == .takesLongKey, key.count > StoreKey.maximumLength { return lenient }
    if fault == .refusesLongestKey, key.count == StoreKey.maximumLength {
      throw StoreError(.invalidKey, during: .value, store: information.name, key: key, message: "too long")
    }
    do {
      return try await body()
    } catch let error as StoreError where fault == .showsKeyInMessage {
      throw StoreError(
        error.code, during: error.operation, store: error.store, key: error.key,
        message: "\(error.message): \(error.key?.string ?? "")", underlying: error.underlying, outcome: error.outcome)
    } catch let error as StoreError where fault == .errorsWithoutStore || fault == .errorsWithUnknownOutcome {
      throw StoreError(
        error.code, during: error.operation, store: fault == .errorsWithoutStore ? "" : error.store, key: error.key,
        message: error.message, underlying: error.underlying,
        outcome: fault == .errorsWithUnknownOutcome ? .unknown : error.outcome)
    }
  }

  private var takesNegativeLimits: Bool {
    switch fault {
    case .takesNegativeLimit: true
    case .takesBadArgumentsWhenClosed: state.withLock { $0.isClosed }
    case .takesBadArgumentsWhenReopened: isReopened
    default: false
    }
  }

  private func writeWaiting() async throws {
    let waiting = state.withLock { state in
      defer { state.waiting = [] }
      return state.waiting
    }
    if !waiting.isEmpty { try await base.apply(ChangeBatch(waiting)) }
  }

  private func isValid(_ key: StoreKey) -> Bool {
    !key.isEmpty && key.count < StoreKey.maximumLength
  }

  private func mapped(_ key: StoreKey) -> StoreKey {
    switch fault {
    case .foldsCase: key.string.map { StoreKey($0.lowercased()) } ?? key
    case .foldsComposition: key.string.map { StoreKey($0.precomposedStringWithCanonicalMapping) } ?? key
    default: key
    }
  }

  private func changed(_ range: KeyRange, _ limit: Int, _ order: ScanOrder) -> (KeyRange, Int, ScanOrder) {
    switch fault {
    case .ignoresLimit where limit >= 0: (range, .max, order)
    case .cutsScansAt10000 where limit > 10_000: (range, 10_000, order)
    case .limitOneTooMany where limit >= 0 && limit < .max: (range, limit + 1, order)
    case .includesUpperBound: (KeyRange(from: range.lowerBound, upTo: range.upperBound?.successor), limit, order)
    case .leavesOutLowerBound where !range.lowerBound.isEmpty: (range.after(range.lowerBound), limit, order)
    case .ignoresOrder: (range, limit, .ascending)
    case .includesKeyBelowLowerBound where range.lowerBound.bytes.last ?? 0 > 0 && !range.isEmpty:
      (KeyRange(from: below(range.lowerBound), upTo: range.upperBound), limit, order)
    case .leavesOutLastBelowUpperBound:
      (
        KeyRange(
          from: range.lowerBound,
          upTo: range.upperBound.map { $0.bytes.last == 0 ? StoreKey(bytes: $0.bytes.dropLast()) : $0 }), limit, order
      )
    case .repeatsEntryBetweenPages where range.lowerBound.bytes.last == 0:
      (KeyRange(from: StoreKey(bytes: range.lowerBound.bytes.dropLast()), upTo: range.upperBound), limit, order)
    case .skipsEntryBetweenPages where range.lowerBound.bytes.last == 0:
      (KeyRange(from: StoreKey(bytes: range.lowerBound.bytes.dropLast() + [1]), upTo: range.upperBound), limit, order)
    default: (range, limit, order)
    }
  }

  /// Returns the previous key, for keys that end in letters and digits.
  private func below(_ key: StoreKey) -> StoreKey {
    StoreKey(bytes: key.bytes.dropLast() + [(key.bytes.last ?? 1) - 1])
  }

  private func seen(damageAt key: StoreKey, _ body: () async throws -> Value?) async throws -> Value? {
    do {
      let value = try await body()
      return fault == .storedNilIsMissing ? value ?? nil : value
    } catch let error as StoreError where error.code == .corrupted {
      switch fault {
      case .damagedIsMissing: return nil
      case .damagedIsDeleted:
        try await base.removeValue(forKey: key)
        throw error
      default: throw error
      }
    }
  }

  private func outsideCancellation<Result: Sendable>(
    _ body: @escaping @Sendable () async throws -> Result
  ) async throws -> Result {
    try await Task.detached { try await body() }.value
  }
}

extension Optional {
  /// The wrapped content.
  ///
  /// It is missing if a mutant gave up when it should have answered.
  fileprivate func unwrapped() throws -> Wrapped {
    guard let self else {
      throw StoreError(.unsupported, during: .update, message: "the mutant has no result")
    }
    return self
  }
}

extension Array {
  fileprivate func asyncMap<Result>(_ body: (Element) async throws -> Result) async throws -> [Result] {
    var results: [Result] = []
    for element in self { results.append(try await body(element)) }
    return results
  }
}

extension MutantStore: ObservableStore {
  func observe(_ range: KeyRange, _ observer: @escaping @Sendable (StoreEvent) -> Void) -> StoreObservation {
    observers.add(range, observer)
  }
}

extension MutantStore: MaintainableStore where Base: MaintainableStore {
  func storeStatistics() async throws -> StoreStatistics {
    if fault == .maintainsWhenClosed { return StoreStatistics(entryCount: 0, bytesOnDisk: nil) }
    var statistics = try await base.storeStatistics()
    if fault == .countsWronglyInStatistics { statistics.entryCount += 1 }
    return statistics
  }

  func verify() async throws -> VerificationReport {
    fault == .verifiesNothing ? VerificationReport(entryCount: 0) : try await base.verify()
  }

  func compact() async throws {
    try await base.compact()
    guard fault == .compactingLosesAnEntry,
      let key = try await base.keys(in: .all, limit: 1, order: .ascending).first
    else { return }
    try await base.removeValue(forKey: key)
  }

  func backup(to path: String, compacting: Bool) async throws {
    try await base.backup(to: path, compacting: compacting)
  }
}
