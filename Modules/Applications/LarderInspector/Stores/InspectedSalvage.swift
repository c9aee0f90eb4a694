#if Inspector
import HTTPTypes
public import Larder

extension InspectedStore {
  /// Adds a page that copies the readable entries of a damaged store to a new store.
  ///
  /// ```swift
  /// let users = try await JSONFileStore<User>(path: "users.json", access: .readOnly)
  /// let rescued = try await JSONFileStore<User>(path: "rescued.json")
  /// let inspected = try InspectedStore("users", users, codec: .json()).salvaging(users, into: rescued)
  /// ```
  ///
  /// The page needs an inspector that allows changes. It refuses a destination that has entries, and changes nothing else.
  ///
  /// - Parameters:
  ///   - source: The store of the pages, or the store below its expiring layer, whose values contain their deadlines. If it is open
  ///     with the access `readOnly`, the damage stays as it is.
  ///   - destination: The store to copy to. Its name is in the page.
  ///   - allowsPlainCopies: A Boolean value that indicates whether encrypted values may be copied to a store that does not encrypt
  ///     them. Defaults to `false`.
  /// - Throws: `StoreError` with `unsupported` if the copy would lose deadlines, the order of a queue or the encryption of values.
  public func salvaging<Stored>(
    _ source: some DataStore<Stored>, into destination: some DataStore<Stored>, allowsPlainCopies: Bool = false
  ) throws -> InspectedStore {
    try source.checkCanBeCopied(to: destination, allowsPlainCopies: allowsPlainCopies)
    var result = self
    result.salvage = InspectedSalvage(source, into: destination)
    return result
  }
}

/// A copy of the readable entries of a damaged store, which proceeds in steps.
final class InspectedSalvage: Sendable {
  /// The maximum number of lost keys and ranges that are kept for the page.
  static let listedCount = 1000

  /// The number of entries and lost keys after which a step ends.
  private static let stepLength = 10_000

  /// The maximum number of entries in memory and in a commit.
  private static let batchSize = 100

  /// Keys that could not be read.
  struct Lost: Sendable, Hashable {
    let keys: KeyRange
    let message: String
  }

  /// The course of a salvage.
  struct State: Sendable {
    /// The keys that were not examined yet, or `nil` at the end.
    var remaining: KeyRange?
    var copiedCount = 0
    var lostCount = 0
    /// The first keys and ranges that could not be read.
    var lost: [Lost] = []
    /// The number of entries in the destination at the end.
    var foundCount: Int?

    /// The place at which the salvage continues, or `nil` at the end.
    var position: String? { remaining?.lowerBound.hexadecimal }

    mutating func note(_ keys: KeyRange, _ error: StoreError) {
      lostCount += 1
      if lost.count < InspectedSalvage.listedCount { lost.append(Lost(keys: keys, message: error.message)) }
    }
  }

  /// The destination.
  let destination: StoreInformation

  private let isEmpty: @Sendable () async throws -> Bool
  private let step: @Sendable (inout State?) async throws -> Void

  /// The course of the latest salvage, or `nil` before the first one, and whether a step is under way.
  private let course = Locked<(state: State?, isStepping: Bool)>((nil, false))

  init<Stored>(_ source: some DataStore<Stored>, into destination: some DataStore<Stored>) {
    self.destination = destination.information
    isEmpty = { try await destination.keys(in: .all, limit: 1, order: .ascending).isEmpty }
    step = { state in
      guard let range = state?.remaining else { return }
      let batchSize = min(Self.batchSize, destination.information.maximumChangeCount ?? .max)
      var examinedCount = 0
      var iterator = source.salvage(in: range, batchSize: batchSize).makeAsyncIterator()
      while examinedCount < Self.stepLength, let part = try await iterator.next() {
        switch part {
        case .entries(let entries):
          examinedCount += entries.count
          try await destination.apply(ChangeBatch(entries.map { .set($0.key, $0.value) }))
          state?.copiedCount += entries.count
        case .unreadable(let keys, let error):
          examinedCount += 1
          state?.note(keys, error)
        }
        // After the commit, so that a step that failed is repeated from here.
        state?.remaining = iterator.remaining
      }
      if iterator.remaining == nil {
        state?.remaining = nil
        state?.foundCount = try await destination.count(in: .all)
      }
    }
  }

  /// The course of the latest salvage, or `nil` before the first one.
  var state: State? { course.withLock { $0.state } }

  /// Copies some entries.
  ///
  /// - Parameter position: The ``State/position`` at which a page has seen the salvage, or `nil` to begin a new one.
  /// - Returns: The course so far.
  /// - Throws: ``PageFailure`` if the destination of a new salvage has entries, if another step is under way, or if the salvage is at
  ///   another place; the errors of the stores.
  func advance(at position: String?) async throws -> State {
    guard
      course.withLock({ course in
        defer { course.isStepping = true }
        return !course.isStepping
      })
    else { throw PageFailure(.conflict, "this store is being salvaged already; see the page of the salvage") }
    var state = self.state
    defer { course.withLock { [state] in $0 = (state, false) } }
    if let position {
      guard state?.position == position else {
        throw PageFailure(.conflict, "the salvage is not where this page has seen it; open its page again")
      }
    } else {
      guard try await isEmpty() else {
        throw PageFailure(.conflict, "\(destination.name) already has entries; salvage into a store that has none")
      }
      state = State(remaining: .all)
    }
    try await step(&state)
    return state ?? State()
  }
}

/// The page of a salvage.
extension InspectorPages {
  func salvage(_ fields: FormFields) throws -> Page {
    let (number, store) = try store(fields)
    guard let salvage = store.salvage else {
      throw PageFailure(.notFound, "no store is given into which this one could be salvaged")
    }
    return Page(
      title: "Salvage", crumbs: crumbs(number, store),
      content: """
        <h1>Salvage \(store.name)</h1>
        <p>Copies the entries that can be read to <b>\(salvage.destination.name)</b>, and lists the keys that cannot. This store stays as \
        it is. End the programs that write to it first.</p>
        \(salvageForm(number, salvage))
        \(salvage.state.map(course))
        """)
  }

  /// The button that begins or continues a salvage; `nil` at its end, and without the permission to change anything.
  private func salvageForm(_ number: Int, _ salvage: InspectedSalvage) -> HTML? {
    guard allowsChanges else { return nil }
    guard let state = salvage.state else {
      return """
        <form action="change" method="post">\(hidden([("store", "\(number)"), ("action", "salvage")]))\
        <button class="primary">Salvage into \(salvage.destination.name)</button></form>
        """
    }
    return state.position.map { position in
      "<form action=\"change\" method=\"post\">\(hidden(nextStep(number, at: position)))<button class=\"primary\">Continue</button></form>"
    }
  }

  /// The fields of the next step of a salvage.
  private func nextStep(_ number: Int, at position: String) -> [(String, String)] {
    [("store", "\(number)"), ("action", "salvage"), ("confirmed", "yes"), ("continues", "yes"), ("after", position)]
  }

  /// The rule that the confirmation of a salvage names.
  func salvageRule(of store: InspectedStore) -> HTML? {
    store.salvage.map {
      "<p>They are written to <b>\($0.destination.name)</b>, which must have no entries, in steps that can be stopped. This store stays as it is.</p>"
    }
  }

  /// Performs one step of a salvage.
  func salvageStep(_ number: Int, _ store: InspectedStore, _ fields: FormFields) async throws -> ChangeResult {
    let address = Page.address("salvage", ["store": "\(number)"])
    guard let salvage = store.salvage else { throw PageFailure(.notFound, "there is nothing to salvage into") }
    let state = try await salvage.advance(at: fields["continues"] == nil ? nil : fields["after"] ?? "")
    guard let position = state.position else { return .done(address: address) }
    return .partly(
      progress(
        "\(Readable.count(state.copiedCount)) entries copied and \(Readable.count(state.lostCount)) lost so far.",
        crumbs: crumbs(number, store), address: address, nextStep(number, at: position)))
  }

  private func course(_ state: InspectedSalvage.State) -> HTML {
    let rows = state.lost.map { lost -> HTML in
      let keys: HTML =
        if let key = lost.keys.onlyKey { "\(Readable.key(key))" } else {
          """
          \(lost.keys.lowerBound.isEmpty ? "from the beginning" : "from “\(Readable.key(lost.keys.lowerBound))”") \
          \(lost.keys.upperBound.map { "up to “\(Readable.key($0))”" } ?? "up to the end")
          """
        }
      return "<tr><th scope=\"row\">\(keys)</th><td>\(lost.message)</td></tr>"
    }
    let outcome: HTML =
      state.remaining == nil
      ? "<p class=\"good\" role=\"status\">\(Readable.count(state.copiedCount)) entries were copied.</p>"
      : "<p role=\"status\">\(Readable.count(state.copiedCount)) entries were copied so far.</p>"
    let missing: HTML? = state.foundCount.flatMap { count in
      count < state.copiedCount
        ? "<p class=\"problem\">The new store has only \(Readable.count(count)) entries. Another program has removed the others.</p>"
        : nil
    }
    guard state.lostCount > 0 else { return "\(outcome)\(missing)" }
    return """
      \(outcome)\(missing)<p class="problem">\(Readable.count(state.lostCount)) keys or ranges could not be read\
      \(state.lostCount > state.lost.count ? "; these are the first of them" : "").
      In some stores, <code>larder salvage --possibly-older</code> finds entries that may not be the latest ones.</p>
      <div class="table"><table><thead><tr><th scope="col">Key</th><th scope="col">Reason</th></tr></thead>
      <tbody>\(rows)</tbody></table></div>
      """
  }
}
#endif
