public import Larder

/// Reading, requeuing and purging dead letters.
extension QueueStore {
  /// Returns the dead letters.
  ///
  /// ```swift
  /// for letter in try await queue.deadLetters(limit: 20, after: 0) {
  ///   print(letter.key, letter.attempts, letter.reason)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - limit: The maximum number of dead letters.
  ///   - sequence: The sequence number to start after; only dead letters with a greater `DeadLetter.sequence` are
  ///     returned.
  /// - Returns: The dead letters in order of arrival.
  /// - Throws: `StoreError` with `invalidArgument` if the limit is negative; `closed`; `ioFailed`.
  @concurrent
  public func deadLetters(limit: Int, after sequence: UInt128) async throws -> [DeadLetter<Element>] {
    try information.check(limit: limit, for: .deadLetters)
    return try await running(.deadLetters) {
      try await engine.payloads(
        .deadLetters, \.item, finding: { $0.ledger.deadLetters(limit, after: UInt64(clamping: sequence)) }
      ).map { state, payload in
        let item = state.item
        return DeadLetter(
          key: item.key, sequence: UInt128(item.sequence), attempts: Int(item.attempts),
          reason: state.cause?.reason ?? .undecodable, date: .init(microsecondsSince1970: state.cause?.time ?? 0),
          value: coder.result(of: payload, item, during: .deadLetters))
      }
    }
  }

  /// Moves dead letters to the end of the queue, as if they were enqueued now and had never been delivered.
  ///
  /// If several dead letters have the same key, the latest one is moved.
  ///
  /// ```swift
  /// let letters = try await queue.deadLetters(limit: 20, after: 0)
  /// try await queue.requeue(letters.map(\.key))
  /// ```
  ///
  /// - Parameter keys: The keys of the dead letters. Keys without a dead letter are ignored.
  /// - Returns: The number of dead letters moved.
  /// - Throws: `StoreError` with `conflict` if an item with the key is in the queue, or `full` if the disk is full,
  ///   with nothing changed; `invalidKey`; `closed`; `ioFailed`. `CancellationError`.
  @discardableResult
  public func requeue(_ keys: [StoreKey]) async throws -> Int {
    try information.check(keys, for: .requeue)
    return try await perform(.requeue, .writes, needsRoom: true) { core in
      try keys.reduce(0) { try core.ledger.requeue($1, into: &core.frames) ? $0 + 1 : $0 }
    }
  }

  /// Moves all dead letters to the end of the queue in their order of arrival, as if they were enqueued now.
  ///
  /// A dead letter stays if an item in the queue has its key. If the call fails, some dead letters may already have
  /// been moved.
  ///
  /// - Returns: The number of dead letters moved.
  /// - Throws: `StoreError` with `full` if the disk is full; `closed`; `ioFailed`. `CancellationError`.
  @discardableResult
  public func requeueDeadLetters() async throws -> Int {
    try await running(.requeue) {
      // Excludes items that become dead letters during this call.
      let last = try await engine.perform(.requeue, .looks) { $0.ledger.nextSequence }
      var count = 0
      var next: UInt64? = 1
      while let first = next, first < last {
        let part = try await engine.perform(.requeue, .writes, needsRoom: true) { core in
          try core.ledger.requeueAll(1000, in: first...(last - 1), into: &core.frames)
        }
        count += part.count
        next = part.last.map { $0 + 1 }
      }
      return count
    }
  }

  /// Calls a closure for each item that becomes a dead letter; see `DurableQueue`.
  ///
  /// ```swift
  /// let observation = queue.observeDeadLetters { letter in
  ///   logger.error("\(letter.key) failed after \(letter.attempts) attempts")
  /// }
  /// ```
  ///
  /// - Parameter observer: A closure that receives the report after the change is written. It runs on a thread of the
  ///   queue or of a caller and must not block.
  /// - Returns: The observation. It ends when you cancel it or release it.
  public func observeDeadLetters(_ observer: @escaping @Sendable (DeadLetterEvent) -> Void) -> StoreObservation {
    engine.deadLetterObservers.add(observer)
  }

  /// Permanently removes the dead letters of several keys.
  ///
  /// - Parameter keys: The keys of the dead letters. Keys without a dead letter are ignored.
  /// - Returns: The number of dead letters removed.
  /// - Throws: `StoreError` with `invalidKey`, `closed`, `full` or `ioFailed`. `CancellationError`.
  @discardableResult
  public func purgeDeadLetters(_ keys: [StoreKey]) async throws -> Int {
    try information.check(keys, for: .purgeDeadLetters)
    return try await perform(.purgeDeadLetters, .writes) { core in
      keys.reduce(0) { $0 + core.ledger.purgeDeadLetters($1, into: &core.frames) }
    }
  }

  /// Permanently removes all dead letters.
  ///
  /// - Returns: The number of dead letters removed.
  /// - Throws: `StoreError` with `closed`, `full` or `ioFailed`. `CancellationError`.
  @discardableResult
  public func purgeDeadLetters() async throws -> Int {
    try await perform(.purgeDeadLetters, .writes) { core in core.ledger.purgeDeadLetters(into: &core.frames) }
  }
}
