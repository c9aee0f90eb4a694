import LarderBounded
import LarderCBOR
import LarderConfiguration
import LarderCoordination
import LarderLMDB
import LarderPostgres
import LarderSQLite

struct Image: Sendable {
  var byteCount = 0
}

var images: MemoryCache<URL, Image> { standIn() }
var image: Image { standIn() }
var url: URL { standIn() }
var users: CachedStore<LMDBStore<User>> { standIn() }
var store: LMDBStore<User> { standIn() }
var origin: LoadingStore<Article> { standIn() }
var articles: TieredStore<LoadingStore<Article>, LMDBStore<[UInt8]>> { standIn() }
var configuration: TieredStoreConfiguration {
  get { standIn() }
  set {}
}
var locks: StoreLock { standIn() }
