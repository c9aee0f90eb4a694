import Larder

extension HistoryStep {
  /// What the body of an abandoned update throws.
  private struct Abandonment: Error {}

  /// Does what the step says on a store; to open and close stores is up to the caller, so ``reopen`` and ``die`` do
  /// nothing.
  ///
  /// - Parameter store: The store.
  /// - Returns: What came of it.
  /// - Throws: What the store throws.
  func run<Store: DataStore>(on store: Store) async throws -> HistoryResult where Store.Value == Int {
    switch self {
    case .apply(let changes):
      try await store.apply(ChangeBatch(changes))
      return .done
    case .add(let number, let keys):
      let sums = try await store.update(keys) { slots in
        for slot in slots.indices { slots[slot] = HistoryStep.sum(slots[slot], number) }
        return slots
      }
      return .slots(sums)
    case .abandon(let keys):
      do {
        try await store.update(keys) { slots in
          for slot in slots.indices { slots[slot] = nil }
          throw Abandonment()
        }
      } catch is Abandonment {
        return .done
      }
      throw Mismatch(subject: "\(self)", expected: "the error of the body", got: "no error", place: "")
    case .value(let key): return .slots([try await store.value(forKey: key)])
    case .values(let keys): return .slots(try await store.values(forKeys: keys))
    case .contains(let key): return .truth(try await store.contains(key))
    case .entries(let range, let limit, let order):
      return .entries(try await store.entries(in: range, limit: limit, order: order))
    case .keys(let range, let limit, let order):
      return .keys(try await store.keys(in: range, limit: limit, order: order))
    case .count(let range): return .count(try await store.count(in: range))
    case .pages(let range, let size, let order):
      var pages: [[StoreEntry<Int>]] = []
      for try await page in store.pages(of: range, size: size, order: order) { pages.append(page.entries) }
      return .pages(pages)
    case .synchronize:
      try await store.synchronize()
      return .done
    case .compact:
      do {
        try await store.information.maintenance?.compact()
      } catch let error as StoreError where error.code == .unsupported && error.outcome == .nothingChanged {
        // Some stores use space again by themselves and cannot give it back.
      }
      return .done
    case .reopen, .die:
      return .done
    }
  }

  /// What the step must give back.
  ///
  /// - Parameter state: The entries before.
  func result(in state: [StoreKey: Int]) -> HistoryResult {
    func entries(_ range: KeyRange, _ limit: Int, _ order: ScanOrder) -> [StoreEntry<Int>] {
      ScanModel(Array(state.keys)).keys(in: range, limit: limit, order: order)
        .compactMap { key in state[key].map { StoreEntry(key: key, value: $0) } }
    }
    switch self {
    case .apply, .abandon, .synchronize, .compact, .reopen, .die: return .done
    case .add(let number, let keys): return .slots(keys.map { HistoryStep.sum(state[$0], number) })
    case .value(let key): return .slots([state[key]])
    case .values(let keys): return .slots(keys.map { state[$0] })
    case .contains(let key): return .truth(state[key] != nil)
    case .entries(let range, let limit, let order): return .entries(entries(range, limit, order))
    case .keys(let range, let limit, let order): return .keys(entries(range, limit, order).map(\.key))
    case .count(let range): return .count(entries(range, .max, .ascending).count)
    case .pages(let range, let size, let order):
      let all = entries(range, .max, order)
      return .pages(stride(from: 0, to: all.count, by: size).map { Array(all[$0..<min($0 + size, all.count)]) })
    }
  }
}
