#if HTTPCache
import HTTPCachingRules
import Larder

/// A body that is being stored.
///
/// The bytes are stored in batches of chunks, each in one update with the body's mark. The first batch is written when
/// its ``StorageLayout/batchLength`` chunks are full. A body that ends before is stored in one update with its response,
/// without a mark.
///
/// Only one task may write. Any number may read what is stored.
final class BodyWriter<Base: DataStore>: Sendable where Base.Value == [UInt8] {
  /// The identifier of the body, for the parts of its response.
  let body = BodyIdentifier.random()

  private let storage: ResponseStorage<Base>

  /// The number of bytes that the body is expected to have, or 0 if it is unknown.
  private let expectedLength: Int64

  private struct State {
    /// The number of bytes that are stored, and whether the body has a mark.
    var stored: Int64 = 0
    var isMarked = false
    /// The bytes that follow.
    var pending: [UInt8] = []
  }

  private let state = Locked(State())

  init(_ storage: ResponseStorage<Base>, expectedLength: Int64) {
    (self.storage, self.expectedLength) = (storage, expectedLength)
    storage.leases.begin([body])
  }

  deinit {
    // If the body was neither finished nor abandoned, its mark is swept.
    storage.leases.end([body])
  }

  /// The number of bytes from the beginning that are in the store.
  var storedCount: Int64 { state.withLock { $0.stored } }

  /// The number of bytes of the body so far.
  var count: Int64 { state.withLock { $0.stored + Int64($0.pending.count) } }

  /// Appends bytes, and stores the full chunks as soon as there are enough for the first batch.
  ///
  /// - Throws: ``StorageRefusal``; the errors of the store. Afterward, abandon the body.
  func append(_ bytes: some Collection<UInt8>) async throws {
    guard count + Int64(bytes.count) <= storage.options.largestBody else { throw StorageRefusal.tooLarge }
    state.withLock { $0.pending.append(contentsOf: bytes) }
    while let batch = nextBatch() { try await write(batch) }
  }

  private struct Batch: Sendable {
    var start: Int64
    var bytes: ArraySlice<UInt8>
    /// A Boolean value that indicates whether the body has a mark already.
    var isMarked: Bool

    var end: Int64 { start + Int64(bytes.count) }
  }

  private func nextBatch() -> Batch? {
    state.withLock { state in
      let chunkLength = StorageLayout.chunkLength
      let chunkCount = min(state.pending.count / chunkLength, StorageLayout.batchLength)
      guard chunkCount >= (state.isMarked ? 1 : StorageLayout.batchLength) else { return nil }
      return Batch(
        start: state.stored, bytes: state.pending[..<(chunkCount * chunkLength)], isMarked: state.isMarked)
    }
  }

  private func write(_ batch: Batch) async throws {
    try await storage.committing { commit in
      try await add(batch, to: &commit, isLast: false)
      // Without a limit of the lasting bytes, the commit evicts nothing.
      commit.limit = storage.options.capacity
      commit.share = storage.options.unfinishedShare
    }
    state.withLock { state in
      state.pending.removeFirst(batch.bytes.count)
      (state.stored, state.isMarked) = (batch.end, true)
    }
  }

  private func add(_ batch: Batch, to commit: inout StorageCommit, isLast: Bool) async throws {
    let layout = storage.layout
    let markKey = layout.markKey(of: body)
    // A sweep may have renewed the mark, or another process may have taken the body for abandoned.
    let old = try await storage.base.value(forKey: markKey)
    guard (old != nil) == batch.isMarked else { throw StorageRefusal.superseded }
    let mark = BodyMark(
      owner: storage.owner, process: storage.options.processes.own, renewed: storage.now, count: batch.end,
      reserved: expectedLength)
    if !isLast || old != nil { commit.setMark(markKey, replacing: old, by: isLast ? nil : mark) }
    for offset in stride(from: 0, to: batch.bytes.count, by: StorageLayout.chunkLength) {
      let chunk = batch.bytes.dropFirst(offset).prefix(StorageLayout.chunkLength)
      commit.set(layout.chunkKey(of: body, at: batch.start + Int64(offset)), Array(chunk))
    }
  }

  // MARK: Finishing

  /// Adds the rest of the body and the end of its mark to the commit that stores the response.
  func addRest(to commit: inout StorageCommit) async throws {
    let rest = state.withLock { state in
      Batch(start: state.stored, bytes: state.pending[...], isMarked: state.isMarked)
    }
    try await add(rest, to: &commit, isLast: true)
  }

  /// Notes that the response was stored.
  func finish() {
    state.withLock { state in
      state.stored += Int64(state.pending.count)
      (state.pending, state.isMarked) = ([], false)
    }
  }

  /// Retires what is stored of the body.
  ///
  /// It can still be read as long as the writer exists. If the response was stored, it is a no-op.
  func abandon() async throws {
    try await storage.retireMarked(body)
  }

  // MARK: Reading

  /// Returns bytes of the body that are stored.
  ///
  /// - Parameters:
  ///   - position: The place of the first byte in the body.
  ///   - end: The end of the range, at most ``storedCount``.
  /// - Returns: At least one byte, and at most one chunk.
  /// - Throws: `StoreError` with `corrupted` if the chunk is missing or damaged; the errors of the store.
  func bytes(from position: Int64, upTo end: Int64) async throws -> ArraySlice<UInt8> {
    try await storage.bytes(
      of: StoredBody(identifier: body, length: storedCount), from: position, upTo: end)
  }
}
#endif
