"""hpcvdj.recombination.calls: what calls name, and when several genes are as good as one."""

import random
from itertools import combinations

import pytest

from hpcvdj.recombination.calls import CallPolicy, is_replaced, names_in
from hpcvdj.recombination.exclusions import Exclusion, ExclusionKind
from hpcvdj.recombination.germline import Germline, Segment, read_germline, v_forms
from hpcvdj.recombination.igor import read_model
from hpcvdj.recombination.models import Alleles
from hpcvdj.recombination.packaged import germline_names
from tests.conftest import TABLES
from tests.recombination.igor_files import gene_files

EQUAL_GENES = {
    "human_trb": "2 6-1|3-1 3-2 4-1 4-2 4-3 14|5-1 5-4 5-5 5-6 5-7 5-8|6-2 6-3 6-5 6-6 6-7 6-8|"
    "7-2 7-4 7-6 7-7 7-8 7-9 11-1|10-1 10-2|11-2 11-3|12-3 12-4",
    "human_tra": "1-1 1-2|8-4 8-6|9-1 9-2",
    "mouse_trb": "2 5|12-1 12-2|13-1 13-3",
}
"""Numbers of the V genes whose first alleles have one segment, group by group."""


@pytest.mark.parametrize(
    ("call", "names"),
    [
        ("TRBV6-2/6-3", ["TRBV6-2", "TRBV6-3"]),
        ("TCRBV12-03/12-04", ["TCRBV12-03", "TCRBV12-04"]),
        ("TRBV6-2*01/6-3*01, TRBV6-5", ["TRBV6-2*01", "TRBV6-3*01", "TRBV6-5"]),
        ("IGHV1-69/1-69D", ["IGHV1-69", "IGHV1-69D"]),
        ("TRBV12-3*00(401.5),TRBV12-4*00(401.5)", ["TRBV12-3", "TRBV12-4"]),
        ("TRBV12-3*01(401.5)", ["TRBV12-3*01"]),
        ("IGHV(II)-1-1*01", ["IGHV(II)-1-1*01"]),
        ("TRAV29/DV5*01", ["TRAV29/DV5*01"]),
        ("TRAV15-1/DV6-1", ["TRAV15-1/DV6-1"]),
        ("IGHV3/OR16-12,IGHV3-9", ["IGHV3/OR16-12", "IGHV3-9"]),
        ("IGHD1/OR15-1a*01", ["IGHD1/OR15-1a*01"]),
        ("TRBV5 , TRBV5*00,", ["TRBV5"]),
        ("/", ["/"]),
        ("6-2/6-3", ["6-2", "6-3"]),
        ("(1)", []),
    ],
)
def test_the_names_in_a_call(call, names):
    assert names_in(call) == names


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_genes_are_as_good_as_one_if_all_their_forms_are_equal(path):
    """All pairs of V and of J genes of a packaged table, against the forms themselves."""
    germline, policy = read_germline(path), CallPolicy()
    for kind in ("V", "J"):
        first = {}
        for segment in germline.of(kind):
            first.setdefault(segment.gene, segment)
        # Suffixes of J are prefixes of it backwards: equal forms mean equal forms of either kind.
        forms = {gene: tuple(v_forms(segment.sequence)) for gene, segment in first.items()}
        alone = {gene for gene in first if isinstance(policy.resolve(germline, kind, gene), Segment)}
        assert alone == set(first)
        groups = {}
        for gene in first:
            groups.setdefault(forms[gene], []).append(gene)
        for a, b in combinations(first, 2):
            found = policy.resolve(germline, kind, f"{a},{b}")
            if forms[a] == forms[b]:
                assert found is first[a]
                assert not is_replaced(germline, kind, f"{a},{b}", found)
            else:
                assert found == Exclusion.of(ExclusionKind.AMBIGUOUS_CALL, segment=kind, call=f"{a},{b}")
        several = ["|".join(group) for group in groups.values() if len(group) > 1]
        if kind == "J":
            assert not several or path.stem[-3:] in ("igk", "igl")
        elif path.stem in EQUAL_GENES:
            family = next(iter(first))[:4]
            known = [
                "|".join(f"{family}{number}" for number in group.split()) for group in EQUAL_GENES[path.stem].split("|")
            ]
            assert sorted(several) == sorted(known)


def test_the_allele_that_is_named_decides():
    germline, policy = read_germline("human_tra"), CallPolicy()
    found = policy.resolve(germline, "V", "TRAV23/DV6*02,TRAV29/DV5*01")
    assert isinstance(found, Segment)
    assert found.allele == "TRAV23/DV6*02"
    assert isinstance(policy.resolve(germline, "V", "TRAV23/DV6*01,TRAV29/DV5*01"), Exclusion)
    alleles = policy.resolve(germline, "V", "TRAV23/DV6*01,TRAV23/DV6*03")
    assert isinstance(alleles, Segment)
    assert isinstance(policy.resolve(germline, "V", "TRAV23/DV6*01,TRAV23/DV6*02"), Exclusion)


@pytest.mark.parametrize(
    ("table", "call", "allele"),
    [
        ("human_tra", "TRAV29DV5", "TRAV29/DV5*01"),
        ("human_tra", "TRAV29/DV5*02", "TRAV29/DV5*02"),
        ("human_tra", "TRAV29-DV5*02", "TRAV29/DV5*02"),
        ("human_tra", "TRAV38-2DV8*01", "TRAV38-2/DV8*01"),
        ("human_tra", "TRAV29DV5,TRAV29/DV5*01", "TRAV29/DV5*01"),
        ("human_tra", "TRAV29", "TRAV29/DV5*01"),
        ("human_tra", "TCRAV29-01*02", "TRAV29/DV5*02"),
        ("human_tra", "TRAV38-2", "TRAV38-2/DV8*01"),
        ("mouse_tra", "TRAV16D", "TRAV16D/DV11*02"),
        ("mouse_tra", "TRAV4-4-DV10", "TRAV4-4/DV10*01"),
        ("mouse_tra", "TRAV21-DV12", "TRAV21/DV12*02"),
        ("mouse_tra", "TRAV16DDV11", "TRAV16D/DV11*02"),
        ("mouse_tra", "TRAV15D-1-DV6D-1", "TRAV15D-1/DV6D-1*06"),
    ],
)
def test_spellings_of_genes_of_alpha_and_delta(table, call, allele):
    germline = read_germline(table)
    found = CallPolicy().resolve(germline, "V", call)
    assert isinstance(found, Segment)
    assert found.allele == allele
    assert not is_replaced(germline, "V", call, found)


ORPHON = "TRBV20/OR9-2"


@pytest.mark.parametrize(
    ("call", "allele", "replaced"),
    [
        (f"TRBV20-1,{ORPHON}", "TRBV20-1*01", True),
        (f"{ORPHON}*01,TRBV20-1*01", "TRBV20-1*01", True),
        ("TRBV20-1,TRBV20OR9-2", "TRBV20-1*01", True),
        (f"TRBV6-2,TRBV6-3,{ORPHON}", "TRBV6-2*01", True),
        (f"TRBV6-1,TRBV6-2,{ORPHON}", None, True),
        (f"{ORPHON},TRBV21/OR9-2", None, True),
        ("TRBV6-2,TRBV99", None, True),
        ("TRBV6-2*01,TRBV6-3*99", None, True),
        ("TRBV12-3/12-4", "TRBV12-3*01", False),
        ("TRBV12-3*00(401.5),TRBV12-4*00(401.5)", "TRBV12-3*01", False),
    ],
)
def test_ties_of_human_trb(call, allele, replaced):
    germline = read_germline("human_trb")
    found = CallPolicy().resolve(germline, "V", call)
    if allele is None:
        assert found == Exclusion.of(ExclusionKind.AMBIGUOUS_CALL, segment="V", call=call)
    else:
        assert isinstance(found, Segment)
        assert (found.allele, is_replaced(germline, "V", call, found)) == (allele, replaced)


def test_an_orphon_that_is_listed_counts():
    table = [("V", "TRBV1*01", "GCC"), ("V", "TRBV1/OR9-2*01", "GCA"), ("V", "TRBV2*01", "GCC"), ("J", "TRBJ1*01", "T")]
    germline = Germline(tuple(Segment("TRB", kind, allele, "F", sequence) for kind, allele, sequence in table))
    assert isinstance(CallPolicy().resolve(germline, "V", "TRBV1,TRBV1/OR9-2"), Exclusion)
    assert CallPolicy().resolve(germline, "V", "TRBV1/OR9-2") is germline.segments[1]


def test_equal_segments_of_two_loci_are_ambiguous():
    """D is that of the locus of V."""
    table = [("TRB", "V", "TRBV1*01"), ("TRB", "J", "TRBJ1*01"), ("TRA", "V", "TRAV1*01"), ("TRA", "J", "TRAJ1*01")]
    germline = Germline(tuple(Segment(*row, "F", "GCC") for row in table))
    assert isinstance(CallPolicy().resolve(germline, "V", "TRBV1,TRAV1"), Exclusion)


def test_a_gene_whose_own_name_has_a_slash():
    table = [("V", "TRBV6-2/6-3*01"), ("V", "TRBV6-2*01"), ("J", "TRBJ1*01")]
    germline = Germline(tuple(Segment("TRB", kind, allele, "F", "GCC") for kind, allele in table))
    for call in ("TRBV6-2/6-3", " TRBV6-2/6-3*01 "):
        found = CallPolicy().resolve(germline, "V", call)
        assert found is germline.segments[0]
        assert not is_replaced(germline, "V", call, germline.segments[0])


def resolved_slowly(listed, parts, policy):
    """The allele for a call of these names, by the documented rules; None where it is excluded.

    listed  {allele: segment}, in the table's order
    """

    def meaning(name):
        own = [allele for allele in listed if allele == name]
        gene = [allele for allele in listed if allele.split("*")[0] == name.split("*")[0]]
        if own or (gene and "*" not in name) or (gene and policy.unlisted == "first"):
            return (own or gene)[0]
        return "gene is listed" if gene else None

    found = [(name, meaning(name)) for name in dict.fromkeys(parts)]
    without = [own for name, own in found if not ("/OR" in name and own is None)]
    if without and len({str(listed.get(own, own)) for own in without}) == 1 and without[0] in listed:
        return without[0]
    if len(found) > 1 and policy.ambiguous == "exclude":
        return None
    return found[0][1] if found[0][1] in listed else None


@pytest.mark.parametrize("seed", range(40))
def test_random_ties(seed):
    rng = random.Random(seed)
    families = [f"TRBV{number}" for number in range(1, 4)]
    genes = [f"{family}-{number}" for family in families for number in range(1, 4)]
    genes += ["TRBV20/OR9-2", "TRBV21/OR9-2", "TRBV30"]
    alleles = [f"{gene}*0{number}" for gene in genes for number in (1, 2, 3)]
    segments = ["GCC", "GCA", "GC", ""]
    listed = {allele: rng.choice(segments) for allele in alleles if rng.random() < 0.5}
    rows = [Segment("TRB", "V", allele, "F", sequence) for allele, sequence in listed.items()]
    germline = Germline((*rows, Segment("TRB", "J", "TRBJ1*01", "F", "TTC"), Segment("TRB", "V", "TRBV9*01", "F", "A")))
    listed["TRBV9*01"] = "A"
    for _ in range(300):
        policy = CallPolicy(rng.choice(["exclude", "first"]), rng.choice(["exclude", "first"]))
        family = rng.choice(families)
        parts = [rng.choice([*genes, *alleles]) for _ in range(rng.randint(1, 4))]
        call = ",".join(parts)
        if rng.random() < 0.3:
            numbers = rng.sample(["1", "2", "3"], rng.randint(2, 3))
            parts = [f"{family}-{number}" for number in numbers]
            call = "/".join([parts[0], *(f"{family[4:]}-{number}" for number in numbers[1:])])
        found = policy.resolve(germline, "V", call)
        expected = resolved_slowly(listed, parts, policy)
        assert (found.allele if isinstance(found, Segment) else None) == expected, call
        if isinstance(found, Segment):
            meanings = [germline.find("V", name) for name in parts]
            replaced = any(own is None or own.sequence != found.sequence for own in meanings)
            assert is_replaced(germline, "V", call, found) == replaced


def test_orphons_in_ties_for_a_model(tmp_path):
    names = ["TRBV6-1*01", "TRBV6-2*01", "TRBV20-1*01", "TRBV29/OR9-2*01", "TRAV4-4/DV10*01"]
    model = read_model(gene_files(names).write(tmp_path))

    def places(call):
        found = model.resolve("V", call)
        return found.get("name") if isinstance(found, Exclusion) else found.places

    assert places(f"TRBV20-1,{ORPHON}") == places(f"{ORPHON}*01,TRBV20-1") == (2,)
    assert places("TRBV6-1/6-2") == (0, 1)
    assert places(f"TRBV6-1/6-2,{ORPHON},trbv20or9-3") == (0, 1)
    assert places("TRBV20-1,TRBV29/OR9-2") == (2, 3)
    assert places("TRAV4-4-DV10") == places("TRAV4-4DV10") == (4,)
    assert places(f"TRBV20-1,{ORPHON},TRBV99") == "TRBV99"
    assert places(f"{ORPHON},TRBV21/OR9-2") == ORPHON
    assert places(ORPHON) == ORPHON
    lacks = [model.lacks("V", call) for call in (f"TRBV20-1,{ORPHON}", "TRBV6-1/6-2", "TRBV20-1*01", "TRBV6")]
    assert lacks == [True, False, False, False]


@pytest.mark.parametrize("spelling", ["trbv7-2*01", "TRBV07-02*01", "TCRBV07-02*01", " TRBV7-2*01", "TRBV7-2"])
def test_counts_and_probabilities_take_the_same_spellings(tmp_path, spelling):
    germline = read_germline("human_trb")
    model = read_model(gene_files([own.allele for own in germline.of("V")]).write(tmp_path))
    found, own = CallPolicy().resolve(germline, "V", spelling), model.resolve("V", spelling)
    assert isinstance(found, Segment)
    assert found.allele in own.allele.split(",")


def test_an_allele_that_is_not_listed_and_a_family(tmp_path):
    germline = read_germline("human_trb")
    model = read_model(gene_files([own.allele for own in germline.of("V")]).write(tmp_path))
    for reference in (lambda call: CallPolicy().resolve(germline, "V", call), lambda call: model.resolve("V", call)):
        assert "V allele TRBV7-2*99 is not in the" in str(reference("TRBV7-2*99"))
        assert "other alleles of TRBV7-2 are" in str(reference("TRBV7-2*99"))
        assert str(reference("TRBV7*99")).startswith("V gene TRBV7")
    # Pathways are those of one segment, probabilities are sums over several.
    family = CallPolicy("first", "first").resolve(germline, "V", "TRBV7")
    assert family.kind is ExclusionKind.FAMILY_CALL
    assert str(family) == "V call TRBV7 is a family of several genes; pathways are those of one gene"
    assert isinstance(model.resolve("V", "TRBV7"), Alleles)


@pytest.mark.slow
@pytest.mark.parametrize("name", germline_names())
def test_a_name_is_read_alike_with_a_germline_and_with_a_model(tmp_path, name):
    """Alleles, genes, families of one gene (TRBV20 is TRBV20-1) and the reverse (TRBV2-1 is TRBV2), in any spelling."""
    germline = read_germline(name)
    listed = germline.of("V")
    model = read_model(gene_files([own.allele for own in listed]).write(tmp_path))
    genes = {own.gene for own in listed}
    for call in (
        {own.allele for own in listed}
        | genes
        | {f"{gene}-1" for gene in genes}
        | {gene.partition("-")[0] for gene in genes}
    ):
        for spelling in (call, call.lower(), call.replace("TRBV", "TCRBV0")):
            segment, alleles = CallPolicy().resolve(germline, "V", spelling), model.resolve("V", spelling)
            if isinstance(alleles, Exclusion):
                assert segment.kind is ExclusionKind.UNLISTED_GENE
            elif isinstance(segment, Exclusion):
                assert segment.kind is ExclusionKind.FAMILY_CALL
                assert len({own.partition("*")[0] for own in alleles.allele.split(",")}) > 1
            else:
                assert segment.allele in alleles.allele.split(",")
