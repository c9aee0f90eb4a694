import Configuration
import LarderBatching
import LarderCBOR
import LarderCache
import LarderExpiry
import LarderLMDB
import LarderSQLite
import LarderWorker

/// A limiter whose rate can change.
final class Limiter: Sendable {
  var rate: Int {
    get { standIn() }
    set {}
  }
}

var stacks: Stacks { standIn() }
var limiter: Limiter { standIn() }
