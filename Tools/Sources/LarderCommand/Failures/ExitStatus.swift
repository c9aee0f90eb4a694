/// What the tool ends with: a few of its own, and those of sysexits.h.
///
/// Thrown, it ends the tool without a word; a failure that has something to say is a ``CommandFailure``.
enum ExitStatus: Int32, Error, CaseIterable {
  /// All was done.
  case done = 0
  /// `get` found nothing; nothing else ends with it.
  case missing = 1
  /// `verify` found damage, or `salvage` could not read everything; nothing else ends with it.
  case damaged = 2
  /// A receipt of `queue acknowledge`, `queue release` or `queue extend` is stale; nothing else ends with it.
  case staleReceipt = 3
  /// The answer to the question of `clear` was not yes; nothing else ends with it.
  case declined = 4
  /// The command line makes no sense (EX_USAGE).
  case usage = 64
  /// Data makes no sense: of a file, of standard input, or in the store (EX_DATAERR).
  case badData = 65
  /// A store or file that is to be read is not there or not readable (EX_NOINPUT).
  case noInput = 66
  /// The tool or a store failed for a reason of its own (EX_SOFTWARE).
  case internalFailure = 70
  /// Reading or writing failed, or there is no room (EX_IOERR).
  case inputOutput = 74
  /// Trying again later can help (EX_TEMPFAIL).
  case tryAgain = 75
  /// The operating system refuses access (EX_NOPERM).
  case notPermitted = 77

  /// What the status means, in a few words, for the help.
  var summary: String {
    switch self {
    case .done: "done"
    case .missing: "get: there is no such key"
    case .damaged: "verify, salvage: there is damage"
    case .staleReceipt: "queue: a receipt is stale"
    case .declined: "clear: the answer was not yes"
    case .usage: "the command line makes no sense"
    case .badData: "data makes no sense: a line of input, or what a store holds"
    case .noInput: "there is no such store or file"
    case .internalFailure: "a failure of the tool or a store itself"
    case .inputOutput: "reading or writing failed, or the disk is full"
    case .tryAgain: "the store is in use; try again later"
    case .notPermitted: "the operating system refuses access"
    }
  }
}
