#if HTTPCache
import HTTPCachingRules
import Larder

/// The bodies that readers and writers of one storage use, which are neither evicted nor removed.
final class BodyLeases: Sendable {
  private let counts = Locked<[BodyIdentifier: Int]>([:])

  func begin(_ bodies: [BodyIdentifier]) {
    counts.withLock { counts in
      for body in bodies { counts[body, default: 0] += 1 }
    }
  }

  func end(_ bodies: [BodyIdentifier]) {
    counts.withLock { counts in
      for body in bodies {
        let count = counts[body, default: 0] - 1
        counts[body] = count > 0 ? count : nil
      }
    }
  }

  func contains(_ body: BodyIdentifier) -> Bool { counts.withLock { $0[body] != nil } }
}

/// A reader of the body of a stored response.
///
/// As long as it exists, its storage does not remove the body, also if the response is replaced, invalidated or evicted.
/// Other processes keep the body for ``StorageOptions/retention`` after its retirement, unless they need the room.
final class BodyReader<Base: DataStore>: Sendable where Base.Value == [UInt8] {
  /// The response.
  let response: StoredResponse

  private let parts: [StoredPart]
  private let bodies: [StoredBody]
  private let storage: ResponseStorage<Base>

  fileprivate init(_ entry: StoredEntry, _ storage: ResponseStorage<Base>) {
    (response, parts, bodies, self.storage) = (entry.response, entry.parts, entry.bodies, storage)
    storage.leases.begin(bodies.map(\.identifier))
  }

  deinit {
    storage.leases.end(bodies.map(\.identifier))
  }

  /// Returns bytes of the representation.
  ///
  /// - Parameters:
  ///   - position: The place of the first byte in the representation.
  ///   - end: The end of the range. It is greater.
  /// - Returns: At least one byte, and at most one chunk.
  /// - Throws: `StoreError` with `corrupted` if the response does not have the byte, or if the chunk is missing or
  ///   damaged; the errors of the store.
  func bytes(from position: Int64, upTo end: Int64) async throws -> ArraySlice<UInt8> {
    guard let part = parts.first(where: { $0.range.contains(position) }),
      let body = bodies.first(where: { $0.identifier == part.body })
    else {
      throw storage.missingBytes("the stored response does not have all bytes of the range; fetch them again")
    }
    return try await storage.bytes(
      of: body, from: position - part.bodyStart, upTo: min(end, part.range.upperBound) - part.bodyStart)
  }
}

extension ResponseStorage {
  /// Returns a reader of the body of a stored response, or `nil` if the response has been removed since it was read.
  func reader(of entry: StoredEntry) async throws -> BodyReader<Base>? {
    // The reader is registered first. If the response is still there afterward, its bodies are not retired yet, and
    // are not removed before the reader's end.
    let reader = BodyReader(entry, self)
    return try await base.value(forKey: entry.key) == nil ? nil : reader
  }

  /// Returns bytes of a body: at least one, and at most one chunk.
  ///
  /// - Throws: `StoreError` with `corrupted` if the chunk is missing or damaged; the errors of the store.
  func bytes(of body: StoredBody, from position: Int64, upTo end: Int64) async throws -> ArraySlice<UInt8> {
    let chunkLength = Int64(StorageLayout.chunkLength)
    guard position >= 0, position < min(end, body.length) else {
      throw missingBytes("the stored body does not have all bytes of the range; fetch them again")
    }
    let start = position - position % chunkLength
    let chunk = try await base.value(forKey: layout.chunkKey(of: body.identifier, at: start))
    guard let chunk, chunk.count == min(chunkLength, body.length - start) else {
      throw missingBytes("a chunk of the stored body is missing or damaged; fetch the response again")
    }
    return chunk[Int(position - start)..<Int(min(end - start, Int64(chunk.count)))]
  }

  fileprivate func missingBytes(_ message: String) -> StoreError {
    StoreError(.corrupted, during: .read, store: base.information.name, message: message)
  }
}
#endif
