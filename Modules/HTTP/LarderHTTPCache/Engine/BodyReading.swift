#if HTTPCache
import Larder

/// The reading of a response's body, from the store, from the origin, or from both.
///
/// When it is discarded, it releases the stored bodies and leaves the fetch.
final class BodyReading: Sendable {
  /// A part of a body.
  enum Segment: Sendable {
    /// Bytes in memory.
    case bytes([UInt8])
    /// A range of the representation of a stored response.
    case stored(CacheReader, Range<Int64>)
    /// Bytes that are being fetched.
    case fetched(Fetch, BodyWindow.Reader)
  }

  /// The maximum number of chunks that one call of the store reads, and so that a reading keeps in memory.
  private static let chunksPerCall = 8

  private struct State {
    /// The segments that were not read yet, the next one last.
    var segments: [Segment]
    /// A Boolean value that indicates whether a task waits for the next bytes.
    var isReading = false

    /// Returns the next segment, and removes it if it is in memory.
    mutating func nextSegment() -> Segment? {
      if case .bytes = segments.last { return segments.removeLast() }
      return segments.last
    }
  }

  private let state: Locked<State>
  private let calls: StoreCalls
  private let onUnreadable: @Sendable () async -> Void
  private let onBytes: @Sendable (_ count: Int, _ areStored: Bool) -> Void

  /// Creates a reading.
  ///
  /// - Parameters:
  ///   - segments: The parts of the body, in order.
  ///   - calls: The calls of the store.
  ///   - onBytes: A closure that receives the number of bytes of each chunk, and whether they come from the store.
  ///   - onUnreadable: A closure that is called when stored bytes are missing or damaged.
  init(
    _ segments: [Segment], _ calls: StoreCalls, onBytes: @escaping @Sendable (Int, Bool) -> Void,
    onUnreadable: @escaping @Sendable () async -> Void = {}
  ) {
    state = Locked(State(segments: segments.reversed()))
    self.calls = calls
    self.onBytes = onBytes
    self.onUnreadable = onUnreadable
  }

  deinit {
    for case .fetched(let fetch, let reader) in state.withLock({ $0.segments }) { fetch.removeReader(reader) }
  }

  /// Returns the next bytes, or `nil` at the end.
  func next() async throws -> [UInt8]? {
    let isFree = state.withLock { state in
      defer { state.isReading = true }
      return !state.isReading
    }
    guard isFree else {
      throw HTTPCacheError(.bodyInUse, "another task is reading the body; read it in one task")
    }
    defer { state.withLock { $0.isReading = false } }
    while let segment = state.withLock({ $0.nextSegment() }) {
      switch segment {
      case .bytes(let bytes):
        onBytes(bytes.count, true)
        if !bytes.isEmpty { return bytes }
      case .stored(_, let range) where range.isEmpty:
        removeSegment()
      case .stored(let reader, let range):
        let chunks = try await read(reader, range)
        let end = chunks.reduce(range.lowerBound) { $0 + Int64($1.count) }
        state.withLock { state in
          state.segments[state.segments.count - 1] = .stored(reader, end..<range.upperBound)
          state.segments += chunks.reversed().map { .bytes($0) }
        }
      case .fetched(let fetch, let reader):
        if let bytes = try await fetch.next(reader, calls) {
          onBytes(bytes.count, false)
          return bytes
        }
        removeSegment()
        fetch.removeReader(reader)
      }
    }
    return nil
  }

  /// Reads the next chunks from the store, in one call, because each call has a cost of its own.
  private func read(_ reader: CacheReader, _ range: Range<Int64>) async throws -> [[UInt8]] {
    do {
      return try await calls.reading {
        var chunks: [[UInt8]] = []
        chunks.reserveCapacity(Self.chunksPerCall)
        var position = range.lowerBound
        while position < range.upperBound, chunks.count < Self.chunksPerCall {
          chunks.append(Array(try await reader.bytes(from: position, upTo: range.upperBound)))
          position += Int64(chunks[chunks.count - 1].count)
        }
        return chunks
      }
    } catch let error as CancellationError {
      throw error
    } catch {
      if (error as? StoreError)?.isValueUnreadable == true { await onUnreadable() }
      throw HTTPCacheError.unreadableBody
    }
  }

  private func removeSegment() {
    _ = state.withLock { $0.segments.removeLast() }
  }
}

extension StoreCalls {
  /// Calls the store to read, and repeats the call once if the store fails or exceeds its time limit.
  ///
  /// The head of a response has left the cache when most of its body is read, so the origin cannot answer instead.
  func reading<Result: Sendable>(_ body: @escaping @Sendable () async throws -> Result) async throws -> Result {
    do {
      return try await self(body)
    } catch let error as StoreError where !error.isValueUnreadable {
      return try await self(evenIfPaused: true, body)
    }
  }
}
#endif
