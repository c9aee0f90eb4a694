import LarderConfiguration
import LarderLMDB
import LarderSQLite

struct Image {
  init(data: Data) throws {}
}

var base: AnyDataStore<User> { standIn() }
var store: MeteredStore<AnyDataStore<User>> { standIn() }
var data: Data { standIn() }

func fetch() async throws -> Article { standIn() }
