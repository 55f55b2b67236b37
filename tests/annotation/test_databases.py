"""Databases of receptors: every row is used, or left out with its reason; a table that cannot be read is one line."""

import gzip
import hashlib
import re

import pyarrow as pa
import pytest

from hpcvdj.annotation.centres import centres_of
from hpcvdj.annotation.settings import DatabaseSettings
from hpcvdj.errors import InputError
from hpcvdj.recombination.igor import load_model
from hpcvdj.repertoires.databases import database_of, read_database
from tests.asked import warnings_said

HEADER = (
    "gene\tcdr3\tv.segm\tj.segm\tspecies\tmhc.a\tantigen.epitope\tantigen.gene\tantigen.species\t"
    "reference.id\tcomplex.id\n"
)
# Public receptors of GILGFVFTL, of NLVPMVATV and of GLCTLVAML.
GIL = "TRB\tCASSIRSSYEQYF\tTRBV19*01\tTRBJ2-7*01\tHomoSapiens\tHLA-A*02:01\tGILGFVFTL\tM1\tInfluenzaA\tPMID:1\t0\n"
NLV = "TRB\tCASSLAPGATNEKLFF\tTRBV7-6*01\tTRBJ1-4*01\tHomoSapiens\tHLA-A*02:01\tNLVPMVATV\tpp65\tCMV\tPMID:2\t7\n"


@pytest.fixture(scope="module")
def model():
    return load_model("human_trb_m15")


@pytest.fixture
def read(tmp_path, model):
    """The centres of a database with such bytes."""

    def of(content, **settings):
        path = tmp_path / "db.txt"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return centres_of(read_database(path, settings.get("database_columns")), model, DatabaseSettings(**settings),
                          "vj", ())  # fmt: skip

    return of


REFUSED = {
    "is empty": b" \n",
    "no record takes part (it is empty)": HEADER,
    "no column antigen.epitope, as VDJdb, vdjdb.slim.txt has": "gene\tcdr3\tv.segm\n" + "TRB\tCASSF\tTRBV19\n",
    "its columns are separated by semicolons, as some spreadsheets do: save it with tabs": b"a;b\n1;2\n",
    "there are a|b": b"a|b\n1|2\n",
    "none of the databases that hpcvdj knows": "x,y\n1,2\n",
    "is in UTF-16": (HEADER + GIL).encode("utf-16"),
    "duplicate column cdr3; rename": HEADER.replace("mhc.a", "cdr3") + GIL,
    "line 2: not a readable table (field larger": HEADER + GIL.replace("M1", "M" * 200_000),
    "a zip archive; unpack it": b"PK\x03\x04",
    "not a readable database": gzip.compress((HEADER + GIL).encode())[:-5],
    "no record takes part (1 junction_aa with other letters than amino acids)": HEADER + GIL.replace("SIRS", "SXRS"),
    "no record takes part (1 of another species); species says which take part": HEADER
    + GIL.replace("HomoSapiens", "MusMusculus"),
    "no record takes part (1 no V call); database_columns={'v_call': 'COLUMN'} says where they are, and match='none' "
    "needs none": HEADER + GIL.replace("TRBV19*01", ""),
    "no record takes part (1 no J call); database_columns={'j_call': 'COLUMN'} says where they are, and match='v' "
    "needs none": HEADER + GIL.replace("TRBJ2-7*01", ""),
    "no record takes part (1 no epitope)": HEADER + GIL.replace("GILGFVFTL", ""),
}


@pytest.mark.parametrize("message", REFUSED)
def test_a_database_that_cannot_be_used_is_one_line(read, message):
    with pytest.raises(InputError) as error:
        read(REFUSED[message])
    assert message in str(error.value)
    assert "db.txt: " in str(error.value)
    assert "\n" not in str(error.value)


def test_each_row_is_used_or_counted_with_its_reason(read):
    odd = [GIL.replace("CASSIRSSYEQYF", text) for text in ("CASS*RSSYEQYF", "CASS_RSSYEQYF", "CASSéRSSYEQYF")]
    rows = [
        GIL, GIL, NLV, GIL.replace("CASSIRSSYEQYF", "cassirssyeqyf"), *odd, GIL.replace("CASSIRSSYEQYF", ""),
        GIL.replace("CASSIRSSYEQYF", "CASSIRSSYEQY"), GIL.replace("CASSIRSSYEQYF", f"C{'A' * 90}F"),
        GIL.replace("TRBV19*01", "TRBV99*01"), GIL.replace("TRBV19*01", ""), GIL.replace("TRBJ2-7*01", ""),
        GIL.replace("TRB\t", "XYZ\t").replace("TRBV19*01", "").replace("TRBJ2-7*01", ""), "TRB\tCASSIF\n",
        GIL.replace("TRB", "TRA"), GIL.replace("HomoSapiens", "MusMusculus"), GIL.replace("GILGFVFTL", ""),
        GIL.replace("PMID:1", "PMID:9"),
    ]  # fmt: skip
    centres = read(HEADER + "".join(rows), exclude_reference=("pmid: 9",))
    assert centres.used + sum(centres.left_out.values()) == len(rows)
    assert centres.used == 4
    assert centres.left_out == {
        "junction_aa with other letters than amino acids": 3,
        "of another locus than the model's (TRB)": 2,
        "row that is not whole": 1, "no junction_aa": 1, "junction_aa that does not go from C to F, V or W": 1,
        "junction_aa shorter than 5 or longer than 64": 1, "V gene that is not in the model": 1, "no V call": 1,
        "no J call": 1, "of another species": 1, "no epitope": 1, "of an excluded reference": 1,
    }  # fmt: skip
    # The same record several times is one sequence, and names all its rows.
    assert centres.texts == ["CASSIRSSYEQYF", "CASSLAPGATNEKLFF"]
    assert centres.rows == ["1;2;4", "3"]
    assert [own.name for own in centres.epitopes] == ["GILGFVFTL", "NLVPMVATV"]


def test_texts_are_one_line(read):
    table = 'epitope,antigen,junction_aa,v_call,j_call\n"GIL\nGFVFTL","a\tb\0",CASSIRSSYEQYF,TRBV19,TRBJ2-7\n'
    (epitope,) = read(table).epitopes
    assert (epitope.name, epitope.antigen) == ("GIL GFVFTL", "a b")


def test_cdr3s_that_are_called_junctions(read):
    """The remedy that the error names was not named, and did not help: the column stayed one of junctions, too."""
    table = "epitope,junction_aa,v_call,j_call,species\nGILGFVFTL,ASSIRSSYEQY,TRBV19,TRBJ2-7,human\n"
    remedy = re.escape("; database_columns={'cdr3_aa': 'COLUMN'} says that a column has CDR3s, without these ends")
    with pytest.raises(InputError, match=rf"\(1 junction_aa that does not go from C to F, V or W\){remedy}$"):
        read(table)
    assert read(table, database_columns={"cdr3_aa": "junction_aa"}).texts == ["CASSIRSSYEQYF"]
    junctions = table.replace("junction_aa", "cdr3_aa").replace("ASSIRSSYEQY", "CASSIRSSYEQYF")
    assert read(junctions, database_columns={"junction_aa": "cdr3_aa"}).texts == ["CASSIRSSYEQYF"]


def test_a_species_of_a_database_without_species():
    """All records took part without a word."""
    row = {"v_call": "TRBV19*01", "j_call": "TRBJ2-7*01", "junction_aa": "CASSIRSSYEQYF", "epitope": "GILGFVFTL"}
    for table, number in ((row, 1), ({**row, "species": "human"}, 0), ({**row, "Organism": "human"}, 1)):
        with warnings_said() as said:
            DatabaseSettings(species="mouse").records(pa.Table.from_pylist([table]))
        assert said == number * [
            "species='mouse': the database has no column of species, so that all records take part; name it with "
            "database_columns={'species': 'COLUMN'}"
        ]
    with warnings_said() as said:
        DatabaseSettings().records(pa.Table.from_pylist([row]))
        named = {"species": "Organism"}
        DatabaseSettings(species="mouse", database_columns=named).records(
            pa.Table.from_pylist([row | {"Organism": ""}])
        )
    assert said == []


def test_a_table_in_memory(model):
    row = {"v_call": "TRBV19*01", "j_call": "TRBJ2-7*01", "junction_aa": "CASSIRSSYEQYF", "epitope": "GILGFVFTL"}
    table = pa.Table.from_pylist([row, {**row, "epitope": None}])
    centres = centres_of(database_of(table), model, DatabaseSettings(), "vj", ())
    assert (centres.used, centres.left_out) == (1, {"no epitope": 1})
    with pytest.raises(InputError, match="database: is a int; give the path of a file, or a pandas"):
        database_of(3)


@pytest.mark.parametrize("separator", [";", ", ", "/", " "])
def test_several_peptides_in_a_cell_are_a_record_of_each(read, separator):
    both, _, left_out = GIL.rpartition("GILGFVFTL")
    own = centres_of_names(read(HEADER + GIL + NLV + both + f"NLVPMVATV{separator}GILGFVFTL" + left_out))
    assert own == centres_of_names(read(HEADER + GIL + NLV + both + "NLVPMVATV" + left_out))
    for name in (f"gag{separator}NLVPMVATV", "GILGFVFTL + PHOS(S3)", "GILGFVFTL"):
        assert set(centres_of_names(read(HEADER + GIL.replace("GILGFVFTL", name)))) == {name}


def centres_of_names(centres):
    return {epitope.name: [centres.texts[k] for k in epitope.centres] for epitope in centres.epitopes}


def test_a_table_of_cdr3s_is_read_without_naming_its_columns(read):
    table = "epitope\tcdr3_aa\tv_call\tj_call\nGILGFVFTL\tASSIRSSYEQY\tTRBV19\tTRBJ2-7\n"
    centres = read(table)
    assert centres.used == 1
    named = read(table, database_columns={name: name for name in ("epitope", "cdr3_aa", "v_call", "j_call")})
    assert centres.texts == named.texts


def test_columns_that_users_name_of_a_known_database(read, tmp_path):
    """They were ignored."""
    table = HEADER.replace("\n", "\tmy.v\tmy.cdr3\n") + GIL.replace("\n", "\tTRBV9*01\tASSIRSSYEQY\n")
    assert read(table).texts == ["CASSIRSSYEQYF"]
    path = tmp_path / "known.txt"
    path.write_text(table)
    (record,) = read_database(path, {"v_call": "my.v"}).records
    assert (record.v_call, record.junction_aa, record.epitope) == ("TRBV9*01", "CASSIRSSYEQYF", "GILGFVFTL")
    (record,) = read_database(path, {"cdr3_aa": "cdr3"}).records
    assert (record.junction_aa, record.cdr3_aa) == ("", "CASSIRSSYEQYF")
    assert centres_of_names(read(table, database_columns={"epitope": "mhc.a"})) == {"HLA-A*02:01": ["CASSIRSSYEQYF"]}
    path.write_text("cdr3.alpha\tcdr3.beta\tv.beta\tantigen.epitope\tmy.peptide\n\tCASSIRSSYEQYF\tTRBV19\tX\tY\n")
    assert [record.epitope for record in read_database(path, {"epitope": "my.peptide"}).records] == ["Y"]
    message = (
        "each chain has its own column for v_call; database_columns={'epitope': 'COLUMN', 'junction_aa': 'COLUMN'}"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        read_database(path, {"v_call": "my.peptide"})


def test_genes_of_records_that_take_no_part_are_of_no_record(model):
    """Clonotypes with such genes were counted among those that can be like a record."""
    row = {"v_call": "TRBV19*01", "j_call": "TRBJ2-7*01", "junction_aa": "CASSIRSSYEQYF", "epitope": "GILGFVFTL"}
    table = pa.Table.from_pylist([row, {**row, "v_call": "TRBV9*01", "junction_aa": "CA*SYEQYF"}])
    centres = centres_of(database_of(table), model, DatabaseSettings(), "vj", ())
    assert [v.allele for v, _ in centres.classes] == ["TRBV19"]


def test_a_record_of_an_allele_that_the_model_lacks_has_its_gene(model):
    """It was left out, though genes are compared."""
    row = {"v_call": "TRBV19*99", "j_call": "TRBJ2-7*77", "junction_aa": "CASSIRSSYEQYF", "epitope": "GILGFVFTL"}
    centres = centres_of(database_of(pa.Table.from_pylist([row])), model, DatabaseSettings(), "vj", ())
    assert [(v.allele, j.allele) for v, j in centres.classes] == [("TRBV19", "TRBJ2-7")]
    assert centres.used == 1
    unknown = pa.Table.from_pylist([row, {**row, "v_call": "TRBV999*01"}])
    left_out = centres_of(database_of(unknown), model, DatabaseSettings(), "vj", ()).left_out
    assert list(left_out.values()) == [1]


@pytest.mark.parametrize("separator", ["\t", ","])
def test_texts_in_quotes(read, separator):
    """As R and pyarrow write them, also between tabs."""
    lines = [("epitope", "junction_aa", "v_call", "j_call"), ("GILGFVFTL", "CASSIRSSYEQYF", "TRBV19", "TRBJ2-7")]
    centres = read("".join(separator.join(f'"{text}"' for text in line) + "\n" for line in lines))
    assert centres.texts == read("".join(separator.join(line) + "\n" for line in lines)).texts
    assert len(centres.texts) == 1


IEDB_COLUMNS = {
    "Epitope Name": "GILGFVFTL", "Epitope Source Molecule": "M1", "Epitope Source Organism": "Influenza A",
    "Assay MHC Allele Names": "HLA-A*02:01", "Reference IEDB IRI": "http://iedb/1", "Chain 1 Type": "alpha",
    "Chain 1 Organism IRI": "http://purl/NCBITaxon_9606", "Chain 1 Calculated V Gene": "",
    "Chain 1 Curated V Gene": "TRAV27*01", "Chain 1 Calculated J Gene": "TRAJ42*01", "Chain 1 Curated J Gene": "x",
    "Chain 1 CDR3 Calculated": "", "Chain 1 CDR3 Curated": "AGGGSQGNLI", "Chain 2 Type": "beta",
    "Chain 2 Organism IRI": "http://purl/NCBITaxon_9606", "Chain 2 Curated V Gene": "TRBV19*01",
    "Chain 2 Curated J Gene": "TRBJ2-7*01", "Chain 2 CDR3 Calculated": "", "Chain 2 CDR3 Curated": "CASSIRSSYEQYF",
}  # fmt: skip


@pytest.mark.parametrize("lines", [1, 2])
def test_the_export_of_iedb(tmp_path, lines):
    """Its header has two lines, the first of which says to what the second belongs."""
    groups = ("Epitope", "Assay", "Reference", "Chain 1", "Chain 2")
    of = [next(group for group in groups if name.startswith(group)) for name in IEDB_COLUMNS]
    header = [",".join(IEDB_COLUMNS)]
    if lines == 2:
        names = [name.removeprefix(f"{group} ") for name, group in zip(IEDB_COLUMNS, of, strict=True)]
        header = [",".join(of), ",".join(names)]
    row = ",".join(f'"{text}"' for text in IEDB_COLUMNS.values())
    (tmp_path / "tcr_full_v3.csv").write_text("\n".join([*header, row, row.replace("GILGFVFTL", "a, b")]) + "\n")
    records = read_database(tmp_path / "tcr_full_v3.csv")
    assert (records.kind.name, len(records.table), records.unread) == ("iedb", 2, 0)
    alpha, beta, *_ = records.records
    assert (alpha.locus, alpha.species, alpha.v_call, alpha.j_call, alpha.junction_aa, alpha.cdr3_aa) == (
        "TRA", "human", "TRAV27*01", "TRAJ42*01", "", "AGGGSQGNLI"
    )  # fmt: skip
    assert (beta.locus, beta.v_call, beta.j_call, beta.junction_aa, beta.cdr3_aa) == (
        "TRB", "TRBV19*01", "TRBJ2-7*01", "CASSIRSSYEQYF", ""
    )  # fmt: skip
    assert {(own.epitope, own.antigen, own.organism, own.mhc, own.reference) for own in (alpha, beta)} == {
        ("GILGFVFTL", "M1", "Influenza A", "HLA-A*02:01", "http://iedb/1")
    }
    assert records.records[-1].epitope == "a, b", "a comma between quotes separates no columns"


def test_mcpas_in_latin_1(tmp_path):
    """Names of diseases have letters that are not UTF-8."""
    names = ["CDR3.alpha.aa", "CDR3.beta.aa", "Species", "TRBV", "TRBJ", "Epitope.peptide", "Pathology", "PubMed.ID"]
    row = ["NA", "CASSIRSSYEQYF", "Human", "TRBV19", "TRBJ2-7", "GILGFVFTL", "Sjögren", "1"]
    data = "\n".join([",".join(names), ",".join(row)]).encode("latin-1")
    (tmp_path / "McPAS-TCR.csv").write_bytes(data)
    records = read_database(tmp_path / "McPAS-TCR.csv")
    (record,) = records.records
    assert (record.locus, record.junction_aa, record.organism) == ("TRB", "CASSIRSSYEQYF", "Sjögren")
    assert records.recorded == {
        "path": str(tmp_path / "McPAS-TCR.csv"), "sha256": hashlib.sha256(data).hexdigest(), "kind": "mcpas", "rows": 1,
    }  # fmt: skip


def test_quotes_of_vdjdb_are_of_its_texts(tmp_path):
    """It has JSON texts between tabs."""
    path = tmp_path / "vdjdb.slim.txt"
    path.write_text(
        HEADER.replace("\n", "\tmeta\n") + GIL.replace("\n", '\t"{""a"": "x\n') + NLV.replace("\n", '\ty"\n')
    )
    records = read_database(path)
    assert [record.epitope for record in records.records] == ["GILGFVFTL", "NLVPMVATV"]
    assert records.table[0][-1] == '"{""a"": "x'


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_utf_16_of_both_orders(tmp_path, mark):
    (tmp_path / "d.txt").write_bytes(mark + b"a\0b\0")
    with pytest.raises(InputError, match="is in UTF-16"):
        read_database(tmp_path / "d.txt")
