#if HTTPCache
import Foundation

/// The bytes of a body that have arrived and were not read.
struct BodyIntake {
  /// The next thing that a reader does.
  enum Step {
    case bytes(Data)
    case wait
    case end
    case failure(any Error)
  }

  private enum Ending {
    case complete
    case failed(any Error)
  }

  private var chunks: [Data] = []
  private var position = 0
  private var ending: Ending?

  /// The number of bytes that have arrived and were not read.
  private(set) var unreadCount = 0

  /// A Boolean value that indicates whether nothing more arrives.
  var isEnded: Bool { ending != nil }

  /// Appends bytes that have arrived.
  ///
  /// They are dropped if the body has ended.
  mutating func append(_ data: Data) {
    guard ending == nil, !data.isEmpty else { return }
    chunks.append(data)
    unreadCount += data.count
  }

  /// Ends the body, unless it has ended before.
  ///
  /// - Parameter failure: The error if the body was cut short. The reader gets it in place of the bytes that it has not read.
  /// - Returns: The unread bytes. They must be released outside of a lock.
  mutating func end(_ failure: (any Error)?) -> [Data] {
    guard ending == nil else { return [] }
    guard let failure else {
      ending = .complete
      return []
    }
    ending = .failed(failure)
    defer { (chunks, position, unreadCount) = ([], 0, 0) }
    return chunks
  }

  /// Returns the next step of the reader.
  mutating func next() -> Step {
    if position < chunks.count {
      let data = chunks[position]
      chunks[position] = Data()
      position += 1
      if position == chunks.count { (chunks, position) = ([], 0) }
      unreadCount -= data.count
      return .bytes(data)
    }
    switch ending {
    case nil: return .wait
    case .complete: return .end
    case .failed(let error): return .failure(error)
    }
  }
}
#endif
