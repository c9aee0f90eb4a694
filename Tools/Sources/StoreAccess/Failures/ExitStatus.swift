/// The exit codes of the tool: a few of its own, and those of sysexits.h.
///
/// A verb that throws one ends the tool without a message. A ``CommandFailure`` adds a message.
package enum ExitStatus: Int32, Error, CaseIterable {
  /// Success.
  case done = 0
  /// `get` found no such key, or `http show` no such response. No other verb uses it.
  case missing = 1
  /// `verify`, `http verify` or `restore` found damage, or `salvage` could not read everything. No other verb uses it.
  case damaged = 2
  /// A receipt of `queue acknowledge`, `queue release` or `queue extend` is stale. No other verb uses it.
  case staleReceipt = 3
  /// The answer to the question of `clear` was not yes. No other verb uses it.
  case declined = 4
  /// `diff` found a difference. No other verb uses it.
  case different = 5
  /// The command line is invalid (EX_USAGE).
  case usage = 64
  /// Data of a file, of standard input or in the store is invalid (EX_DATAERR).
  case badData = 65
  /// A store or file to read is missing or not readable (EX_NOINPUT).
  case noInput = 66
  /// The tool or a store failed internally (EX_SOFTWARE).
  case internalFailure = 70
  /// Reading or writing failed, or the disk is full (EX_IOERR).
  case inputOutput = 74
  /// A later attempt can succeed (EX_TEMPFAIL).
  case tryAgain = 75
  /// The operating system refuses access, or the key of an encrypted value is missing (EX_NOPERM).
  case notPermitted = 77

  /// The meaning in a few words, for the help.
  package var summary: String {
    switch self {
    case .done: "success"
    case .missing: "get, http show: there is no such entry"
    case .damaged: "verify, restore, salvage: the store is damaged"
    case .staleReceipt: "queue: a receipt is stale"
    case .declined: "clear: the answer was not yes"
    case .different: "diff: the stores differ"
    case .usage: "the command line is invalid"
    case .badData: "a line of input or the data of a store is invalid"
    case .noInput: "the store or file does not exist"
    case .internalFailure: "the tool or a store failed internally"
    case .inputOutput: "reading or writing failed, or the disk is full"
    case .tryAgain: "the store is in use; try again later"
    case .notPermitted: "the operating system refuses access, or a key is missing"
    }
  }
}
