import LarderConfiguration
import LarderLMDB
import LarderSQLite

var bytes: LMDBStore<[UInt8]> { standIn() }
var images: BoundedStore<LMDBStore<[UInt8]>> { standIn() }
var data: [UInt8] { standIn() }
var configuration: BoundedStoreConfiguration {
  get { standIn() }
  set {}
}
