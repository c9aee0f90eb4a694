/// The state of a connection to a PostgreSQL server that shows which messages commit, and which ones answer them.
///
/// A commit is one of these:
///
/// - `COMMIT` or `END`, in a simple query or as an executed statement
/// - a sync message that ends an implicit transaction, or a simple query that is one, if one of its statements can write
///
/// A `SELECT` outside a transaction block is no commit, because it hardly ever writes.
package struct PostgresConversation {
  /// The messages of the client up to one that the server answers with `ReadyForQuery`: a sync or a simple query.
  private struct Batch {
    var statements = 0
    var answers = 0
    /// For each commit, the number of statements that the server answers before it.
    var commits: [Int] = []
    var hasFailed = false

    var isCommitNext: Bool { !hasFailed && commits.contains(answers) }
  }

  /// A Boolean value that indicates whether the server has accepted the connection.
  package private(set) var isReady = false

  private var statements: [String: StatementKind] = [:]
  private var portals: [String: StatementKind] = [:]
  /// A Boolean value that indicates whether a transaction block is open after the latest message of the client.
  private var isInBlock = false
  /// A Boolean value that indicates whether the open transaction has a statement that can write.
  private var canWrite = false
  /// The batches without an answer, of which the client has not completed the last one.
  private var batches = [Batch()]

  /// Creates the state of a new connection.
  package init() {}

  /// Follows a message of the client, and returns whether the server commits when it processes the message.
  package mutating func commits(client message: PostgresMessage) -> Bool {
    switch message.type {
    case "P":
      let names = message.strings(2)
      statements[names[0]] = StatementKind(names[1])
    case "B":
      let names = message.strings(2)
      portals[names[0]] = statements[names[1]]
    case "E":
      return execute(portals[message.strings(1)[0]])
    case "Q":
      // A semicolon in a literal only adds a statement without an answer.
      let parts = message.strings(1)[0].split(separator: ";").filter { !$0.allSatisfy(\.isWhitespace) }
      let hasCommit = parts.map { execute(StatementKind($0)) }.contains(true)
      // Unlike a sync message, the query commits before it answers its last statement.
      return endBatch(answersBeforeCommit: batches[batches.count - 1].statements - 1) || hasCommit
    case "S":
      return endBatch(answersBeforeCommit: batches[batches.count - 1].statements)
    default:
      break
    }
    return false
  }

  private mutating func execute(_ statement: StatementKind?) -> Bool {
    batches[batches.count - 1].statements += 1
    switch statement {
    case .begin: isInBlock = true
    case .write: canWrite = true
    case .commit, .rollback:
      (isInBlock, canWrite) = (false, false)
      guard statement == .commit else { return false }
      batches[batches.count - 1].commits.append(batches[batches.count - 1].statements - 1)
      return true
    case .read, nil: break
    }
    return false
  }

  private mutating func endBatch(answersBeforeCommit: Int) -> Bool {
    let isCommit = canWrite && !isInBlock
    if isCommit {
      batches[batches.count - 1].commits.append(answersBeforeCommit)
      canWrite = false
    }
    batches.append(Batch())
    return isCommit
  }

  /// Follows a message of the server, and returns whether it is the answer to a commit, or its error.
  package mutating func answersCommit(server message: PostgresMessage) -> Bool {
    guard isReady else {
      isReady = message.type == "Z"
      return false
    }
    switch message.type {
    case "C", "I", "s":
      defer { batches[0].answers += 1 }
      return batches[0].isCommitNext
    case "E":
      // The server skips the rest of the batch.
      defer { batches[0].hasFailed = true }
      return batches[0].isCommitNext
    case "Z" where batches.count > 1:
      let batch = batches.removeFirst()
      // Only the server knows what an error did to the transaction block.
      if batches.count == 1, batches[0].statements == 0 {
        isInBlock = message.payload.first != UInt8(ascii: "I")
        canWrite = false
      }
      return !batch.hasFailed && batch.commits.contains { $0 >= batch.answers }
    default:
      return false
    }
  }
}

/// A kind of SQL statement, by its first word.
private enum StatementKind {
  case begin, commit, rollback, read, write

  init(_ sql: some StringProtocol) {
    let word = sql.drop { $0.isWhitespace || $0 == "(" }.prefix { $0.isLetter }.lowercased()
    switch word {
    case "begin", "start": self = .begin
    case "commit", "end": self = .commit
    case "rollback", "abort": self = .rollback
    case "with":
      let words = sql.lowercased().split { !$0.isLetter }
      self = words.contains { ["insert", "update", "delete", "merge"].contains($0) } ? .write : .read
    case "", "select", "values", "table", "show", "set", "reset", "explain", "lock", "savepoint", "release", "declare",
      "fetch", "close", "prepare", "deallocate", "discard", "listen", "unlisten", "notify":
      self = .read
    default: self = .write
    }
  }
}
