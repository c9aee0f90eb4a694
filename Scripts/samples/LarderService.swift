import LarderCoordination
import LarderSQLite
import LarderWorker
import Logging
import ServiceLifecycle
import UnixSignals

struct Receipt: Codable, Sendable {}

var worker: QueueWorker { standIn() }
var requests: IdempotencyKeys<Receipt> { standIn() }
var service: StoreService<SQLiteStore<[UInt8]>> { standIn() }

extension StoreServiceSamples {
  static var logger: Logger { standIn() }
}
