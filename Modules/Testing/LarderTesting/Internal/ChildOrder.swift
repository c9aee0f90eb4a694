import Foundation

/// What another process is to do, and where.
struct ChildOrder: Codable, Sendable {
  enum Work: Codable, Sendable {
    /// Open the store while it is open elsewhere, and show what it holds.
    case share
    /// Write until it is killed.
    case write(ChildPlan)
  }

  /// The folder of the store's ``ConformanceLocation``.
  var folder: String
  /// The folder by which the two processes talk to each other.
  var exchange: String
  var work: Work

  init(folder: String, exchange: String, work: Work) {
    self.folder = folder
    self.exchange = exchange
    self.work = work
  }

  /// Makes an order of its text; `nil` if it is none.
  init?(_ text: String) {
    do {
      self = try JSONDecoder().decode(ChildOrder.self, from: Data(text.utf8))
    } catch {
      return nil
    }
  }

  /// The order as text.
  ///
  /// - Throws: What the encoder throws.
  func text() throws -> String {
    String(decoding: try JSONEncoder().encode(self), as: UTF8.self)
  }
}

/// What a process writes, and when it dies.
struct ChildPlan: Codable, Sendable {
  /// When a process dies.
  enum Death: Codable, Sendable {
    /// So many microseconds after its first write.
    case after(UInt32)
    /// When it writes to a file behind so many bytes: that write is cut short.
    case beyond(UInt64)
  }

  /// The number of its first batch.
  var first: Int
  /// Decides on the batches.
  var seed: UInt64
  var death: Death

  /// How many batches it makes if nothing kills it before.
  static let count = 120
}

/// What one process reports to the other, a line each.
enum ChildReport: Codable, Sendable, Equatable {
  /// Opening the store was refused with `locked`.
  case locked
  /// The store holds these texts.
  case holds([String: String])
  /// A batch was acknowledged.
  case acknowledged(Int)
  /// All batches up to this one were synchronized.
  case synchronized(Int)
  /// An error that was not to be.
  case failed(String)
}

/// What one process waits for until the other says so.
enum ChildStep: String, Sendable {
  case isClosed, look, end
}
