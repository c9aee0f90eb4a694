import LarderCBOR
import LarderCache
import LarderConfiguration
import LarderJSON
import LarderLMDB
import LarderSQLite
import LarderTesting

var base: LMDBStore<Expiring<Session>> { standIn() }
var store: ExpiringStore<LMDBStore<Expiring<Session>>, Session> { standIn() }
var sessions: ExpiringStore<LMDBStore<Expiring<Session>>, Session> { standIn() }
var limits: ExpiringStore<LMDBStore<Expiring<Int>>, Int> { standIn() }
var client: StoreKey { standIn() }
var guest: Session { standIn() }
var robot: Session { standIn() }
var profile: Session { standIn() }
